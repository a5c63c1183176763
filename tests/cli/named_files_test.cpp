// No command writes over what it reads, or two things to one file.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

constexpr const char* expected_different = ": expected different files, got ";

/// Refuses `arguments` because of these two, and leaves the file as it is.
void check_kept(const std::string& arguments, const std::string& two, const std::filesystem::path& file) {
  CAPTURE(arguments);
  const std::string before = file_text(file);
  const auto result = run_program(arguments);
  CHECK(result.code != 0);
  CAPTURE(result.errors);
  CHECK(result.errors.find(two + expected_different + file.string()) != std::string::npos);
  CHECK(file_text(file) == before);
}

/// Refuses `arguments` because a picture cannot have this name, and leaves the file as it is.
void check_no_picture(const std::string& arguments, const std::string& option,
                      const std::filesystem::path& file) {
  const std::string before = file_text(file);
  const auto result = run_program(arguments);
  CHECK(result.code != 0);
  CHECK(result.errors.find(option + ": " + file.string() + ": expected a picture's name that ends in") !=
        std::string::npos);
  CHECK(file_text(file) == before);
}

void write_numbers(const std::filesystem::path& file, std::size_t rows) {
  auto x = xt::xarray<double>::from_shape({rows, 2});
  double value = 0;
  for (double& entry : x) entry = value += 0.3;
  widelimit::data::write_npy(file, x);
}

}  // namespace

TEST_CASE("named files: heads") {
  const TemporaryFolder folder;
  const auto config = folder / "bayes.json", table = folder / "t.csv";
  std::ofstream(config) << R"({"prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "tokens": 3, "samples": 100})";
  check_kept(fmt::format("heads bayes {0} --out {0}", config.string()), "the configuration and --out",
             config);
  std::ofstream(table) << "before\n";
  check_no_picture(
      fmt::format("heads flow {} --out {} --plot {}", config.string(), table.string(), table.string()),
      "--plot", table);
}

TEST_CASE("named files: inputs in the folder of results") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out");
  const auto input = folder / "out/nngp.npy", config = folder / "out/summary.json";
  write_numbers(input, 3);
  check_kept(fmt::format("gram fcn --x {} --out {} --force", input.string(), (folder / "out").string()),
             "--x and --out", input);
  std::ofstream(config) << R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 8})";
  check_kept(fmt::format("sde simulate {} --out {} --force --no-pictures", config.string(),
                         (folder / "out").string()),
             "the configuration and --out", config);
}

TEST_CASE("named files: fit and predict") {
  const TemporaryFolder folder;
  std::ofstream csv(folder / "train.csv");
  csv << "a,b,y\n";
  for (int i = 0; i < 12; ++i) csv << i << ',' << i * i % 7 << ',' << i % 3 << '\n';
  csv.close();
  const auto table = folder / "train.csv", picture = folder / "p.png";
  const std::string fit = fmt::format("fit --network fcn --data csv --target y --path {} --model {}",
                                      table.string(), (folder / "m").string());
  check_no_picture(fmt::format("{} --reliability {}", fit, table.string()), "--reliability", table);
  std::ofstream(picture) << "before\n";
  check_kept(
      fmt::format(
          "{} --criterion loo --reliability {} --search 'layers[0].weight_variance=0.5:4:log' --table {}",
          fit, picture.string(), picture.string()),
      "--table and --reliability", picture);
}
