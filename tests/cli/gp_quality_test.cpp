// The scores that people decide by: they follow from predictions.csv, and simple methods stand beside them.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using doctest::Approx;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// Columns of a table without quotes, by their names.
std::map<std::string, std::vector<std::string>> columns_of(const std::filesystem::path& file) {
  const auto lines = lines_of(file_text(file));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines) {
    rows.emplace_back(1);
    for (const char c : line)
      if (c == ',')
        rows.back().emplace_back();
      else
        rows.back().back() += c;
  }
  std::map<std::string, std::vector<std::string>> columns;
  for (std::size_t k = 0; k < rows[0].size(); ++k)
    for (std::size_t i = 1; i < rows.size(); ++i) columns[rows[0][k]].push_back(rows[i].at(k));
  return columns;
}

nlohmann::json results_of(const std::filesystem::path& folder) {
  return nlohmann::json::parse(file_text(folder / "results.json"));
}

/// A line with noise: what linear regression is for. `outputs` of them.
void write_lines(const TemporaryFolder& folder, std::size_t outputs) {
  for (const auto& [name, count, phase] :
       {std::tuple{"train", std::size_t{60}, 0.0}, std::tuple{"test", std::size_t{40}, 0.5}}) {
    xt::xarray<double> x = xt::zeros<double>({count, std::size_t{2}});
    xt::xarray<double> y = xt::zeros<double>({count, outputs});
    for (std::size_t i = 0; i < count; ++i) {
      const double t = static_cast<double>(i) + phase;
      x(i, 0) = std::sin(1.7 * t);
      x(i, 1) = std::cos(2.9 * t);
      for (std::size_t k = 0; k < outputs; ++k)
        y(i, k) = 3 + 2 * x(i, 0) - static_cast<double>(k) * x(i, 1) +
                  0.1 * std::sin(31 * t * (1.0 + static_cast<double>(k)));
    }
    data::write_npy(folder / (std::string("x_") + name + ".npy"), x);
    data::write_npy(folder / (std::string("y_") + name + ".npy"), y);
  }
}

}  // namespace

TEST_CASE("gp: scores of numbers follow from predictions.csv; mean and linear regression stand beside them") {
  const TemporaryFolder folder;
  write_lines(folder, 1);
  const auto result = run_program("gp --network fcn --data npy --targets numbers --path " + folder.string() +
                                  " --no-pictures --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const auto results = results_of(folder / "out");
  const auto columns = columns_of(folder / "out/predictions.csv");
  const auto number = [&](const std::string& column, std::size_t i) {
    return std::stod(columns.at(column).at(i));
  };
  for (const auto& one : results.at("results")) {
    const std::string name = one.at("files");
    for (const std::string percent : {"50", "90", "95"}) {
      double inside = 0;
      for (std::size_t i = 0; i < 40; ++i) {
        const double low = number(name + "_lower_" + percent, i),
                     high = number(name + "_upper_" + percent, i);
        CHECK((low + high) / 2 == Approx(number(name + "_mean_0", i)).epsilon(1e-12));
        inside += low <= number("target_0", i) && number("target_0", i) <= high ? 1 : 0;
      }
      CHECK(one.at("coverage").at(percent).get<double>() == Approx(inside / 40).epsilon(1e-12));
    }
    const double half = number(name + "_upper_95", 3) - number(name + "_mean_0", 3);
    // Student's t distribution with 59 degrees of freedom, of scale sqrt(60 / 59).
    CHECK(one.at("degrees_of_freedom") == 59);
    CHECK(half == Approx(2.0178817144 * number(name + "_observation_deviation", 3)).epsilon(1e-9));
    CHECK(one.at("determination").get<double>() > 0.9);
  }
  const auto baselines = results.at("baselines");
  REQUIRE(baselines.size() == 2);
  CHECK(baselines[0].at("name") == "mean");
  CHECK(baselines[0].at("determination").get<double>() <= 0);
  CHECK(baselines[1].at("name") == "linear regression");
  CHECK(baselines[1].at("determination").get<double>() > 0.99);
  for (const char* part : {"NLPD", "in 95 %", "\n  mean ", "\n  linear regression "})
    CHECK(result.output.find(part) != std::string::npos);
  const std::string page = file_text(folder / "out/report.html");
  for (const char* part : {"<td>linear regression</td>", "<th>in 50 %</th>", "<th>R2</th>"})
    CHECK(page.find(part) != std::string::npos);
}

TEST_CASE("gp: several outputs have interval ends of their own") {
  const TemporaryFolder folder;
  write_lines(folder, 2);
  REQUIRE(run_program("gp --network fcn --data npy --targets numbers --kernel nngp --path " +
                      folder.string() + " --no-report --no-pictures --out " + (folder / "out").string())
              .code == 0);
  const auto columns = columns_of(folder / "out/predictions.csv");
  for (const char* column : {"nngp_lower_50_0", "nngp_lower_50_1", "nngp_upper_95_1"})
    CHECK(columns.contains(column));
}

TEST_CASE(
    "gp: scores of classes follow from predictions.csv, and no density of one-hot numbers is among them") {
  const TemporaryFolder folder;
  const auto result = run_program(
      "gp --network fcn --data sample --train 60 --validation 0 --test 50 --size 4 --kernel nngp "
      "--no-pictures "
      "--out " +
      folder.string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const auto results = results_of(folder.path());
  const auto& one = results.at("results").at(0);
  const auto columns = columns_of(folder / "predictions.csv");
  double loss = 0, brier = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    const std::string truth = columns.at("class").at(i);
    for (const std::string name : results.at("classes")) {
      const double probability = std::stod(columns.at("nngp_probability_" + name).at(i));
      brier += std::pow(probability - (name == truth ? 1 : 0), 2) / 50;
      if (name == truth) loss -= std::log(probability) / 50;
    }
  }
  CHECK(one.at("log_loss").get<double>() == Approx(loss).epsilon(1e-10));
  CHECK(one.at("brier_score").get<double>() == Approx(brier).epsilon(1e-10));
  CHECK_FALSE(one.contains("negative_log_predictive_density"));
  REQUIRE(one.at("classes").size() == 10);
  double right = 0, announced = 0;
  for (const auto& of_class : one.at("classes")) {
    right += of_class.at("recall").get<double>() * of_class.at("inputs").get<double>();
    announced += of_class.at("mean_probability").get<double>();
  }
  CHECK(right / 50 == Approx(one.at("accuracy").get<double>()));
  CHECK(announced == Approx(1));
  const auto& frequencies = results.at("baselines").at(0);
  CHECK(frequencies.at("name") == "class frequencies");
  CHECK(frequencies.at("log_loss").get<double>() == Approx(std::log(10)));
  CHECK(frequencies.at("area_under_curve") == 0.5);
  CHECK(results.at("baselines").at(1).at("name") == "logistic regression");
  CHECK(result.output.find("NLPD") == std::string::npos);
  CHECK(file_text(folder / "report.html").find("<td>logistic regression</td>") != std::string::npos);
}

TEST_CASE("gp: without known test targets there are no scores and no baselines") {
  const TemporaryFolder folder;
  write_lines(folder, 1);
  std::filesystem::remove(folder / "y_test.npy");
  const auto result = run_program("gp --network fcn --data npy --targets numbers --path " + folder.string() +
                                  " --no-pictures --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK_FALSE(results_of(folder / "out").contains("baselines"));
  CHECK(result.output.find("linear regression") == std::string::npos);
  CHECK(columns_of(folder / "out/predictions.csv").contains("ntk_upper_90"));
}

TEST_CASE("gp: texts, each of a length of its own, have a baseline of the means of their words") {
  const auto result =
      run_program("gp --network imdb-gap --data reviews --train 30 --validation 10 --test 12 --kernel nngp");
  REQUIRE(result.code == 0);
  CHECK(result.output.find("\n  logistic regression ") != std::string::npos);
}

TEST_CASE("gp: many columns are no linear model's, and a line says so") {
  const auto result = run_program(
      "gp --network fcn --data sample --train 1100 --test 10 --size 32 --kernel nngp --regulariser 0.1 "
      "--preprocess pixel");
  REQUIRE(result.code == 0);
  CHECK(result.output.find("no linear model beside them: 1100 rows of 3072 numbers") != std::string::npos);
  CHECK(result.output.find("logistic regression") == std::string::npos);
}
