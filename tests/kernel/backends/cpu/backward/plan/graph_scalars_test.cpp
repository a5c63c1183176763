// The numbers of a graph's linear operations.
#include "kernel/backends/cpu/backward/plan/graph_scalars.hpp"

#include <doctest/doctest.h>

#include "kernel/readouts/pull_back.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::graph_scalars_test {
namespace {

Graph graph_of(const std::string& layers, const Shape& shape) {
  return lower_with_readouts(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), shape,
                             Replicate{});
}

TEST_CASE("graph_scalars: in the order of the nodes, of linear operations only") {
  const Graph graph = graph_of(R"([
    {"layer": "dense", "weight_variance": 1.5, "bias_variance": 0.25},
    {"layer": "leaky_relu", "slope": 0.3},
    {"layer": "sum", "branches": [{"layers": []}, {"scale": 0.5, "layers": [
      {"layer": "dense", "weight_variance": 2, "bias_variance": 0.5}]}]},
    {"layer": "dense", "weight_variance": 3, "bias_variance": 0}])",
                               {});
  // A branch's scale multiplies its covariances twice.
  CHECK(graph_scalars(graph) == std::vector<double>{1.5, 0.25, 2, 0.5, 1, 0.25, 3, 0});
}

}  // namespace
}  // namespace widelimit::testing::graph_scalars_test
