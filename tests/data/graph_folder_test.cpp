#include "widelimit/data/graph_folder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "data/temporary_folder.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::data;

/// The arrays of two graphs of two and three nodes, to be spoilt one at a time.
struct GraphArrays {
  xt::xarray<double> features{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}};
  xt::xarray<std::int64_t> offsets{0, 2, 5};
  xt::xarray<std::int64_t> edges{{0, 1}, {2, 4}, {4, 2}};
  xt::xarray<double> weights{0.5, 1, -2};

  void write(const std::filesystem::path& folder) const {
    write_npy(folder / "node_features.npy", features);
    write_npy(folder / "graph_offsets.npy", offsets);
    write_npy(folder / "edges.npy", edges);
    write_npy(folder / "edge_weights.npy", weights);
  }

  [[nodiscard]] std::string error() const {
    const TemporaryFolder folder;
    write(folder.path());
    try {
      static_cast<void>(read_graphs<double>(folder.path()));
    } catch (const DataError& error) {
      const std::string message = error.what();
      REQUIRE(message.starts_with(folder.path().string() + "/"));
      return message.substr(folder.path().string().size() + 1);
    }
    return "no error";
  }
};

template <typename Change>
std::string error_after(const Change& change) {
  GraphArrays arrays;
  change(arrays);
  return arrays.error();
}

TEST_CASE("graph folders: nodes and edges of every graph") {
  const TemporaryFolder folder;
  GraphArrays().write(folder.path());
  const auto read = read_graphs<float>(folder.path());
  REQUIRE(read.graphs.size() == 2);
  CHECK(read.features[1] == xt::xarray<float>{{5, 6}, {7, 8}, {9, 10}});
  CHECK(read.graphs[0].nodes() == 2);
  CHECK(read.graphs[0].weight(0, 1) == 0.5);
  CHECK(read.graphs[0].weight(1, 0) == 0);
  CHECK(read.graphs[1].weight(0, 2) == 1);
  CHECK(read.graphs[1].weight(2, 0) == -2);
  CHECK(read.graphs[1].edges() == 2);
}

TEST_CASE("graph folders: weights are 1 where there are none, types may differ, edges may be missing") {
  const TemporaryFolder folder;
  GraphArrays().write(folder.path());
  std::filesystem::remove(folder.path() / "edge_weights.npy");
  write_npy(folder.path() / "node_features.npy",
            xt::xarray<std::uint8_t>{{1, 0}, {0, 1}, {0, 1}, {1, 1}, {1, 0}});
  write_npy(folder.path() / "graph_offsets.npy", xt::xarray<std::uint32_t>{0, 2, 5});
  write_npy(folder.path() / "edges.npy", xt::xarray<std::int16_t>{{0, 1}});
  CHECK(read_graphs<double>(folder.path()).graphs[0].weight(0, 1) == 1);
  write_npy(folder.path() / "edges.npy", xt::xarray<std::int64_t>::from_shape({0, 2}));
  CHECK(read_graphs<double>(folder.path()).graphs[1].edges() == 0);
}

TEST_CASE("graph folders: what is written is read") {
  const TemporaryFolder folder;
  const GraphFolder<double> graphs{
      {xt::xarray<double>{{0.1, 2}}, xt::xarray<double>{{3, 4}, {5, 6}}},
      {InputGraph(1, {}), InputGraph(2, std::vector<GraphEdge>{{0, 1, 0.3}, {1, 1, -7}})}};
  write_graphs(folder.path() / "new", graphs);
  const auto read = read_graphs<double>(folder.path() / "new");
  CHECK(read.features == graphs.features);
  CHECK(read.graphs[0].edges() == 0);
  CHECK(read.graphs[1].weight(0, 1) == 0.3);
  CHECK(read.graphs[1].weight(1, 1) == -7);
  CHECK(read.graphs[1].edges() == 2);
  GraphFolder<double> bad = graphs;
  bad.features[1] = xt::xarray<double>{{3, 4}};
  CHECK_THROWS_WITH_AS(write_graphs(folder.path(), bad),
                       "write_graphs: graph 1: expected features [2, 2], got [1, 2]", ArgumentError);
  bad.graphs.pop_back();
  CHECK_THROWS_WITH_AS(write_graphs(folder.path(), bad),
                       "write_graphs: expected features for each graph, got 2 of 1 graphs", ArgumentError);
}

TEST_CASE("graph folders: bad files are errors that name them") {
  CHECK(GraphArrays().error() == "no error");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_after([&](GraphArrays& a) { a.features(3, 1) = nan; }) ==
        "node_features.npy: row 3: expected finite features, got nan in channel 1");
  CHECK(error_after([](GraphArrays& a) {
          a.features = xt::xarray<double>{1, 2, 3, 4, 5};
        }) == "node_features.npy: expected node features [nodes, channels], got [5]");
  CHECK(error_after([](GraphArrays& a) {
          a.offsets = {0, 2, 2, 5};
        }) == "graph_offsets.npy: graph 1: expected at least one node, got none");
  CHECK(error_after([](GraphArrays& a) {
          a.offsets = {0, 3, 2, 5};
        }) == "graph_offsets.npy: row 2: expected ascending offsets, got 2 after 3");
  CHECK(error_after([](GraphArrays& a) {
          a.offsets = {1, 5};
        }) == "graph_offsets.npy: expected 0 as the first offset, got 1");
  CHECK(error_after([](GraphArrays& a) {
          a.offsets = {0, 2};
        }) ==
        "graph_offsets.npy: expected the number of rows of node_features.npy (5) as the last offset, got 2");
  CHECK(error_after([](GraphArrays& a) { a.offsets = {0}; }) ==
        "graph_offsets.npy: expected offsets [graphs + 1] of at least one graph, got [1]");
  CHECK(error_after([](GraphArrays& a) { a.edges(1, 1) = 5; }) ==
        "edges.npy: row 1: expected nodes in 0..4, got 5");
  CHECK(error_after([](GraphArrays& a) { a.edges(2, 0) = -1; }) ==
        "edges.npy: row 2: expected nodes in 0..4, got -1");
  CHECK(error_after([](GraphArrays& a) { a.edges(0, 1) = 2; }) ==
        "edges.npy: row 0: expected two nodes of one graph, got 0 of graph 0 and 2 of graph 1");
  CHECK(error_after([](GraphArrays& a) {
          a.edges = {{0, 1}, {2, 4}, {2, 4}};
        }) ==
        "edges.npy: graph 1 (its nodes counted from 0): graph: the edge 0 -> 2 appears twice; add up the "
        "weights of equal "
        "edges");
  CHECK(error_after([](GraphArrays& a) {
          a.edges = {{0, 1, 2}, {1, 2, 0}};
        }) == "edges.npy: expected edges [edges, 2] of source and target, got [2, 3]");
  CHECK(error_after([&](GraphArrays& a) { a.weights(1) = nan; }) ==
        "edge_weights.npy: row 1: expected a finite weight, got nan");
  CHECK(error_after([](GraphArrays& a) {
          a.weights = {1, 2};
        }) == "edge_weights.npy: expected weights [3], one for each row of edges.npy, got [2]");
}

TEST_CASE("graph folders: edges that are no integers, and files that are missing") {
  const TemporaryFolder folder;
  GraphArrays().write(folder.path());
  write_npy(folder.path() / "edges.npy", xt::xarray<double>{{0, 1}});
  CHECK_THROWS_AS(static_cast<void>(read_graphs<float>(folder.path())), DataError);
  std::filesystem::remove(folder.path() / "edges.npy");
  CHECK_THROWS_AS(static_cast<void>(read_graphs<float>(folder.path())), DataError);
}

}  // namespace
}  // namespace widelimit::testing
