// Which graphs have a backward pass.
#include "kernel/backends/cpu/backward/plan/has_backward_pass.hpp"

#include <doctest/doctest.h>

#include "kernel/readouts/pull_back.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::has_backward_pass_test {
namespace {

Graph graph_of(const std::string& layers) {
  return lower_with_readouts(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), {5},
                             Replicate{});
}

TEST_CASE("a graph whose layers all have adjoints has a backward pass") {
  const Graph graph = graph_of(
      R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "local_conv", "filter": [3]},
          {"layer": "erf"}, {"layer": "average_pool", "window": [2]},
          {"layer": "conv", "filter": [3]}, {"layer": "relu"},
          {"layer": "global_average_pool"}])");
  CHECK(has_backward_pass(graph));
  CHECK_NOTHROW(require_backward_pass(graph));
}

TEST_CASE("a sampled layer has none, and the error names it") {
  const Graph graph = graph_of(
      R"([{"layer": "conv", "filter": [3]}, {"layer": "attention", "weights": "softmax",
          "scaling": "inverse_sqrt_width", "samples": 16}, {"layer": "global_average_pool"}])");
  CHECK_FALSE(has_backward_pass(graph));
  CHECK_THROWS_WITH_AS(require_backward_pass(graph), doctest::Contains("layers[1]"), ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing::has_backward_pass_test
