// How the numbers of a graph follow a hyperparameter, against formulas.
#include "kernel/backends/cpu/backward/plan/scalar_slopes.hpp"

#include <doctest/doctest.h>

#include "kernel/backends/cpu/backward/plan/graph_scalars.hpp"
#include "kernel/readouts/pull_back.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::scalar_slopes_test {
namespace {

Graph lowered(const Network& network) { return lower_with_readouts(network, {}, Replicate{}); }

std::optional<std::vector<double>> slopes(const std::string& layers, const std::string& number) {
  return scalar_slopes(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), number, lowered);
}

void check_slopes(const std::string& layers, const std::string& number, const std::vector<double>& expected) {
  const auto found = slopes(layers, number);
  REQUIRE(found);
  REQUIRE(found->size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    if (expected[i] == 0)
      CHECK((*found)[i] == 0);
    else
      CHECK((*found)[i] == doctest::Approx(expected[i]).epsilon(1e-11));
  }
}

const std::string branches = R"([
  {"layer": "dense", "weight_variance": 1.5, "bias_variance": 0.1}, {"layer": "relu"},
  {"layer": "sum", "branches": [{"layers": []}, {"scale": 0.7, "layers": [{"layer": "dense"}]}]},
  {"layer": "dense", "weight_variance": 2, "bias_variance": 0}])";

TEST_CASE("scalar_slopes: a number of one scalar, and a scale that is squared") {
  check_slopes(branches, "layers[0].weight_variance", {1, 0, 0, 0, 0, 0, 0, 0});
  check_slopes(branches, "layers[2].branches[1].scale", {0, 0, 0, 0, 0, 2 * 0.7, 0, 0});
  // From 0 to one side.
  check_slopes(branches, "layers[3].bias_variance", {0, 0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("scalar_slopes: nothing for a number that a layer keeps inside") {
  CHECK_FALSE(slopes(R"([{"layer": "dense"}, {"layer": "leaky_relu", "slope": 0.3}, {"layer": "dense"}])",
                     "layers[1].slope"));
  CHECK_FALSE(slopes(R"([{"layer": "dense"}, {"layer": "layer_norm", "epsilon": 0.3}, {"layer": "dense"}])",
                     "layers[1].epsilon"));
}

}  // namespace
}  // namespace widelimit::testing::scalar_slopes_test
