// Channels of --data npy that all training inputs have in common, and logarithms of targets, in gp, fit and predict.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// Two informative channels, and between them two that are constant in training, where `constants` are wanted.
void write_channels(const TemporaryFolder& folder, bool constants) {
  for (const std::string set : {"train", "test"}) {
    const std::size_t count = set == "train" ? 40 : 6;
    numerics::RandomStream stream(set == "train" ? 1 : 2);
    xt::xarray<double> x = xt::zeros<double>({count, std::size_t{constants ? 4U : 2U}}),
                       y = xt::zeros<double>({count});
    for (std::size_t i = 0; i < count; ++i) {
      const double first = stream.normal(), second = stream.normal();
      if (constants) {
        x(i, 0) = 7;
        x(i, 1) = first;
        x(i, 2) = set == "train" ? -1 : 5;
        x(i, 3) = second;
      } else {
        x(i, 0) = first;
        x(i, 1) = second;
      }
      y(i) = std::exp(3 + first + 0.05 * stream.normal());
    }
    data::write_npy(folder / ("x_" + set + ".npy"), x);
    data::write_npy(folder / ("y_" + set + ".npy"), y);
  }
}

constexpr const char* left_out_note = "the same in all training inputs, and left out: channels 0, 2 (from 0)";

}  // namespace

TEST_CASE("constant channels: gp and fit predict as if they were not there, and predict says new values") {
  const TemporaryFolder with, without;
  write_channels(with, true);
  write_channels(without, false);
  const auto run = [](const TemporaryFolder& data, const std::string& network) {
    const std::string common =
        network + " --data npy --precision double --targets numbers --path " + data.string();
    const auto gp = run_program("gp --kernel nngp --network " + common + " --out " + (data / "gp").string());
    REQUIRE(gp.code == 0);
    const auto fit = run_program("fit --network " + common + " --model " + (data / "model").string());
    REQUIRE(fit.code == 0);
    const auto predict = run_program("predict --model " + (data / "model").string() + " --x " +
                                     (data / "x_test.npy").string() + " --out " + (data / "out").string());
    REQUIRE(predict.code == 0);
    return std::array{gp.output, fit.output, predict.output};
  };
  for (const std::string network : {"fcn:depth=1", "auto"}) {
    const auto said = run(with, network);
    run(without, network);
    CHECK(said[0].find(left_out_note) != std::string::npos);
    CHECK(said[1].find(left_out_note) != std::string::npos);
    CHECK(said[2].find("channels 2 (from 0) are constant in the training data: other numbers there change no "
                       "prediction") != std::string::npos);
    const auto mean = data::read_npy<double>(with / "gp/mean_nngp.npy");
    CHECK(mean == data::read_npy<double>(without / "gp/mean_nngp.npy"));
    CHECK(data::read_npy<double>(with / "out/mean.npy") == data::read_npy<double>(without / "out/mean.npy"));
    for (std::size_t i = 0; i < mean.size(); ++i)
      CHECK(data::read_npy<double>(with / "out/mean.npy").flat(i) ==
            doctest::Approx(mean.flat(i)).epsilon(1e-9));
  }
}

TEST_CASE("constant channels: what is learned of the others is said by their places in the data") {
  const TemporaryFolder folder;
  write_channels(folder, true);
  const auto result = run_program(
      "gp --kernel nngp --network fcn:depth=1 --data npy --precision double --relevance "
      "--targets numbers --target-transform log --path " +
      folder.string());
  REQUIRE(result.code == 0);
  CHECK(result.output.find("channel 1 ") != std::string::npos);
  CHECK(result.output.find("channel 3 ") != std::string::npos);
  CHECK(result.output.find("channel 0 ") == std::string::npos);
}

TEST_CASE("logarithms of targets: positive predictions, and targets that cannot be have no density") {
  const TemporaryFolder folder;
  write_channels(folder, false);
  xt::xarray<double> y = data::read_npy<double>(folder / "y_test.npy");
  y(0) = 0;
  data::write_npy(folder / "y_test.npy", y);
  const auto result = run_program(
      "gp --kernel nngp --network fcn:depth=1 --data npy --precision double --targets numbers "
      "--target-transform log "
      "--path " +
      folder.string() + " --out " + (folder / "out").string());
  REQUIRE(result.code == 0);
  const auto mean = data::read_npy<double>(folder / "out/mean_nngp.npy");
  for (const double number : mean) CHECK(number > 0);
  const auto results = nlohmann::json::parse(file_text(folder / "out/results.json"))["results"][0];
  CHECK(results["fitted"] == "logarithms of the targets");
  CHECK(results["negative_log_predictive_density"] == "infinity");
  const auto refused = run_program(
      "gp --kernel nngp --network fcn:depth=1 --data npy --targets numbers --target-transform sqrt --path " +
      folder.string());
  CHECK(refused.code == 2);
  CHECK(refused.errors.find("--target-transform") != std::string::npos);
}
