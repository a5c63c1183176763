// predictions.csv: what a reader of tables sees of predictions.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "cli/cifar10_files.hpp"
#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/data/synthetic_images.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::write_cifar10;

namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields{""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '"')
      fields.back() += c;
  }
  return fields;
}

/// One row by the names of its columns.
using CsvRow = std::map<std::string, std::string>;

std::vector<CsvRow> table_in(const std::filesystem::path& folder) {
  const auto lines = lines_of(file_text(folder / "predictions.csv"));
  const auto columns = fields_of(lines.at(0));
  std::vector<CsvRow> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto fields = fields_of(lines[i]);
    REQUIRE(fields.size() == columns.size());
    rows.emplace_back();
    for (std::size_t k = 0; k < fields.size(); ++k) CHECK(rows.back().emplace(columns[k], fields[k]).second);
  }
  return rows;
}

}  // namespace

TEST_CASE("gp: predictions.csv leads back to the records, and agrees with the arrays") {
  const TemporaryFolder folder;
  const auto result = run_program(
      "gp --network fcn --data sample --train 40 --validation 20 --test 20 --size 6 --seed 3 --time 2 "
      "--no-pictures "
      "--out " +
      folder.string());
  REQUIRE(result.code == 0);
  const auto rows = table_in(folder.path());
  REQUIRE(rows.size() == 20);
  const auto images = data::generate_synthetic_images(20, 3);
  for (const std::string name : {"nngp", "ntk", "ntk_time0"}) {
    CAPTURE(name);
    const auto mean = data::read_npy<double>(folder / ("mean_" + name + ".npy"));
    const auto variance = data::read_npy<double>(folder / ("variance_" + name + ".npy"));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const CsvRow& row = rows[i];
      CHECK(row.at("index") == std::to_string(i));
      CHECK(row.at("id") == images.names[i]);
      CHECK(row.at("class") == images.class_names[static_cast<std::size_t>(images.labels[i])]);
      CHECK(std::stod(row.at(name + "_standard_deviation")) ==
            doctest::Approx(std::sqrt(variance(i, 0))).epsilon(1e-14));
      double sum = 0, largest = 0;
      std::string most_probable;
      for (std::size_t c = 0; c < 10; ++c) {
        const double probability = std::stod(row.at(name + "_probability_" + images.class_names[c]));
        const double value = std::stod(row.at(name + "_mean_" + images.class_names[c]));
        CHECK(value == mean(i, c));
        sum += probability;
        if (probability > largest) most_probable = images.class_names[c];
        largest = std::max(largest, probability);
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-10));
      CHECK(std::stod(row.at(name + "_probability")) == doctest::Approx(largest).epsilon(1e-12));
      CHECK(row.at(name + "_class") == most_probable);
    }
  }
}

TEST_CASE("gp: predictions.csv of two classes in one output, names quoted where need be") {
  const TemporaryFolder folder;
  const auto result =
      run_program("gp --network imdb-gap --data reviews --train 30 --validation 10 --test 12 --kernel nngp " +
                  std::string("--no-pictures --out ") + folder.string());
  REQUIRE(result.code == 0);
  const auto rows = table_in(folder.path());
  REQUIRE(rows.size() == 12);
  for (const CsvRow& row : rows) {
    CHECK(row.at("id").starts_with("review "));
    const double kind = std::stod(row.at("nngp_probability_kind")),
                 bad = std::stod(row.at("nngp_probability_bad"));
    CHECK(kind + bad == doctest::Approx(1).epsilon(1e-12));
    CHECK(std::isfinite(std::stod(row.at("nngp_mean_kind"))));
    CHECK(row.at("nngp_class") == (kind > 0.5 ? "kind" : "bad"));
    CHECK_FALSE(row.contains("nngp_mean_bad"));
  }
}

TEST_CASE("gp: names of classes with commas and quotes survive in predictions.csv") {
  const TemporaryFolder folder;
  write_cifar10(folder, [](int c) { return "say \"" + std::to_string(c) + "\", twice"; });
  const auto result = run_program(
      "gp --network fcn --data cifar10 --size 4 --train 10 --validation 10 --test 10 "
      "--kernel nngp --no-pictures --path " +
      folder.string() + " --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const auto lines = lines_of(file_text(folder / "out/predictions.csv"));
  CHECK(lines[0].find(",\"nngp_probability_say \"\"3\"\", twice\",") != std::string::npos);
  const auto rows = table_in(folder / "out");
  for (const CsvRow& row : rows) {
    // Record r of the file has class r mod 10.
    REQUIRE(row.at("id").starts_with("test_batch.bin#"));
    const int record = std::stoi(row.at("id").substr(15));
    CHECK(row.at("class") == "say " + std::to_string(record % 10) + ", twice");  // fields_of() drops quotes.
  }
}
