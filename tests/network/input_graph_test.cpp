#include "widelimit/network/input_graph.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/error_message.hpp"
#include "support/graph_errors.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing {
namespace {

std::string edges_error(Index nodes, const std::vector<GraphEdge>& edges) {
  return error_message<Error>([&] { return InputGraph(nodes, edges); });
}

TEST_CASE("graphs: bad edges are errors that name them") {
  check_graph_error(edges_error(0, {}), {"at least one node", "got 0"});
  check_graph_error(edges_error(3, {{0, 1}, {2, 3}}), {"edge 1 (2 -> 3)", "0..2", "got 3"});
  check_graph_error(edges_error(3, {{-1, 2}}), {"edge 0 (-1 -> 2)", "0..2", "got -1"});
  check_graph_error(edges_error(3, {{0, 1}, {1, 2, std::nan("")}}),
                    {"edge 1 (1 -> 2)", "of a size from 1e-100 to 1e+100", "nan"});
  check_graph_error(edges_error(3, {{0, 1, std::numeric_limits<double>::infinity()}}), {"edge 0", "inf"});
  check_graph_error(edges_error(3, {{0, 1}, {1, 0}, {0, 1, 2}}), {"0 -> 1", "twice"});
  check_graph_error(
      error_message<Error>([] { return InputGraph::from_adjacency(Matrix<double>::Zero(2, 3)); }),
      {"square", "2 x 3"});
}

TEST_CASE("graphs: what a graph says of its edges") {
  const InputGraph graph(4, std::vector<GraphEdge>{{2, 1, 0.5}, {1, 2, 0.5}, {0, 1, -3}, {3, 3}});
  CHECK(graph.nodes() == 4);
  CHECK(graph.edges() == 4);
  CHECK(graph.weight(0, 1) == -3);
  CHECK(graph.weight(1, 0) == 0);
  CHECK(graph.weight(3, 3) == 1);
  CHECK(graph.incoming(0).empty());
  REQUIRE(graph.incoming(1).size() == 2);
  CHECK(graph.incoming(1)[1].source == 2);
  REQUIRE(graph.one_way_edge());
  CHECK(graph.one_way_edge()->source == 0);
  const InputGraph uneven(2, std::vector<GraphEdge>{{0, 1, 1}, {1, 0, 2}});
  CHECK(uneven.one_way_edge());
  CHECK_FALSE(InputGraph(2, std::vector<GraphEdge>{{0, 1, 2}, {1, 0, 2}}).one_way_edge());
}

}  // namespace
}  // namespace widelimit::testing
