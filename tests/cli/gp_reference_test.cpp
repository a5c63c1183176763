#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <xtensor/xview.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using widelimit::data::read_npy;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

const std::filesystem::path reference = WIDELIMIT_SOURCE_DIR "/../shared/reference/kernels/prediction";

double largest_difference(const xt::xarray<double>& left, const xt::xarray<double>& right) {
  REQUIRE(left.shape() == right.shape());
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference = std::max(difference, std::abs(left.flat(i) - right.flat(i)));
    scale = std::max(scale, std::abs(right.flat(i)));
  }
  return difference / scale;
}

xt::xarray<double> diagonal_of(const xt::xarray<double>& matrix) {
  xt::xarray<double> values = xt::xarray<double>::from_shape({matrix.shape(0)});
  for (std::size_t i = 0; i < values.size(); ++i) values(i) = matrix(i, i);
  return values;
}

}  // namespace

TEST_CASE("gp: the reference prediction, from files to files") {
  if (!std::filesystem::exists(reference)) {
    MESSAGE("skipped: no reference case beside this checkout");
    return;
  }
  std::ifstream stream(reference / "expected.json");
  const auto expected = nlohmann::json::parse(stream);
  const std::string listed = expected["times"].dump();
  const std::string times = listed.substr(1, listed.size() - 2);
  const TemporaryFolder folder;
  const auto result =
      run_program("gp --network '" + (reference / "network.json").string() + "' --data npy --path '" +
                  reference.string() +
                  "' --kernel both --precision double --amplitude 1 --targets-as-they-are --regulariser " +
                  expected["regulariser"].dump() + " --time " + times + " --out " + folder.string());
  REQUIRE(result.code == 0);
  CHECK(result.errors.empty());

  const double tolerance = 1e-8;
  for (const char* name : {"nngp", "ntk", "ntk_time0", "ntk_time1", "ntk_time2"}) {
    CAPTURE(name);
    const std::string suffix = std::string(name) + ".npy";
    CHECK(largest_difference(read_npy<double>(folder / ("mean_" + suffix)),
                             read_npy<double>(reference / ("mean_" + suffix))) < tolerance);
    const auto variance = read_npy<double>(folder / ("variance_" + suffix));
    const auto expected_variance = diagonal_of(read_npy<double>(reference / ("covariance_" + suffix)));
    REQUIRE(variance.dimension() == 2);
    for (std::size_t output = 0; output < variance.shape(1); ++output) {
      const xt::xarray<double> column = xt::view(variance, xt::all(), output);
      CHECK(largest_difference(column, expected_variance) < tolerance);
    }
  }
  std::ifstream written(folder / "results.json");
  const auto results = nlohmann::json::parse(written);
  CHECK(results["log_marginal_likelihood"].get<double>() ==
        doctest::Approx(expected["log_marginal_likelihood"].get<double>()).epsilon(tolerance).scale(0));
}
