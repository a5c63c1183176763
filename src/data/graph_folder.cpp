#include "widelimit/data/graph_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::data {
namespace {

using Path = std::filesystem::path;

constexpr const char* features_name = "node_features.npy";
constexpr const char* offsets_name = "graph_offsets.npy";
constexpr const char* edges_name = "edges.npy";
constexpr const char* weights_name = "edge_weights.npy";

template <typename... Arguments>
[[noreturn]] void fail_in(const Path& file, fmt::format_string<Arguments...> format,
                          Arguments&&... arguments) {
  throw DataError(
      fmt::format("{}: {}", file.string(), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

template <typename Array>
std::string array_shape(const Array& array) {
  return fmt::format("[{}]", fmt::join(array.shape(), ", "));
}

template <typename Scalar>
xt::xarray<Scalar> read_features(const Path& file) {
  auto features = read_npy_as<Scalar>(file);
  if (features.dimension() != 2 || features.size() == 0)
    fail_in(file, "expected node features [nodes, channels], got {}", array_shape(features));
  const std::size_t channels = features.shape(1);
  for (std::size_t i = 0; i < features.size(); ++i)
    if (!std::isfinite(features.data()[i]))
      fail_in(file, "row {}: expected finite features, got {} in channel {}", i / channels,
              features.data()[i], i % channels);
  return features;
}

std::vector<Index> read_offsets(const Path& file, std::size_t nodes) {
  const auto array = read_npy_as<std::int64_t>(file);
  if (array.dimension() != 1 || array.size() < 2)
    fail_in(file, "expected offsets [graphs + 1] of at least one graph, got {}", array_shape(array));
  const std::vector<Index> offsets(array.begin(), array.end());
  if (offsets.front() != 0) fail_in(file, "expected 0 as the first offset, got {}", offsets.front());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] == offsets[i]) fail_in(file, "graph {}: expected at least one node, got none", i);
    if (offsets[i + 1] < offsets[i])
      fail_in(file, "row {}: expected ascending offsets, got {} after {}", i + 1, offsets[i + 1], offsets[i]);
  }
  if (offsets.back() != static_cast<Index>(nodes))
    fail_in(file, "expected the number of rows of {} ({}) as the last offset, got {}", features_name, nodes,
            offsets.back());
  return offsets;
}

/// [edges]; ones if there is no file.
std::vector<double> read_weights(const Path& file, std::size_t edges) {
  if (!std::filesystem::exists(file)) return std::vector<double>(edges, 1.0);
  const auto array = read_npy_as<double>(file);
  if (array.dimension() != 1 || array.size() != edges)
    fail_in(file, "expected weights [{}], one for each row of {}, got {}", edges, edges_name,
            array_shape(array));
  for (std::size_t i = 0; i < edges; ++i)
    if (!std::isfinite(array.flat(i)))
      fail_in(file, "row {}: expected a finite weight, got {}", i, array.flat(i));
  return {array.begin(), array.end()};
}

/// Which graph a node belongs to.
class GraphOfNode {
 public:
  explicit GraphOfNode(const std::vector<Index>& offsets) : offsets_{offsets} {}

  [[nodiscard]] Index nodes() const { return offsets_.back(); }
  [[nodiscard]] std::size_t operator()(Index node) const {
    // The graph of a node is the last one that begins at or before it.
    return static_cast<std::size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), node) -
                                    offsets_.begin()) -
           1;
  }

 private:
  const std::vector<Index>& offsets_;
};

/// The edges of every graph, nodes counted from its first one.
std::vector<std::vector<GraphEdge>> read_edges(const Path& folder, const std::vector<Index>& offsets) {
  const Path file = folder / edges_name;
  const auto array = read_npy_as<std::int64_t>(file);
  if (array.dimension() != 2 || array.shape(1) != 2)
    fail_in(file, "expected edges [edges, 2] of source and target, got {}", array_shape(array));
  const std::vector<double> weights = read_weights(folder / weights_name, array.shape(0));
  const GraphOfNode graph_of(offsets);
  std::vector<std::vector<GraphEdge>> edges(offsets.size() - 1);
  for (std::size_t i = 0; i < array.shape(0); ++i) {
    const Index source = array(i, 0), target = array(i, 1);
    for (const Index node : {source, target})
      if (node < 0 || node >= graph_of.nodes())
        fail_in(file, "row {}: expected nodes in 0..{}, got {}", i, graph_of.nodes() - 1, node);
    const std::size_t graph = graph_of(source);
    if (graph_of(target) != graph)
      fail_in(file, "row {}: expected two nodes of one graph, got {} of graph {} and {} of graph {}", i,
              source, graph, target, graph_of(target));
    edges[graph].push_back({source - offsets[graph], target - offsets[graph], weights[i]});
  }
  return edges;
}

template <typename Scalar>
void check_fits(const GraphFolder<Scalar>& folder) {
  if (folder.features.size() != folder.graphs.size() || folder.graphs.empty())
    throw ArgumentError(fmt::format("write_graphs: expected features for each graph, got {} of {} graphs",
                                    folder.features.size(), folder.graphs.size()));
  for (std::size_t i = 0; i < folder.graphs.size(); ++i) {
    const auto& features = folder.features[i];
    const bool fits = features.dimension() == 2 &&
                      static_cast<Index>(features.shape(0)) == folder.graphs[i].nodes() &&
                      features.shape(1) == folder.features[0].shape(1);
    if (!fits)
      throw ArgumentError(fmt::format("write_graphs: graph {}: expected features [{}, {}], got {}", i,
                                      folder.graphs[i].nodes(), folder.features[0].shape().back(),
                                      array_shape(features)));
  }
}

}  // namespace

template <typename Scalar>
GraphFolder<Scalar> read_graphs(const Path& folder) {
  const auto features = read_features<Scalar>(folder / features_name);
  const std::vector<Index> offsets = read_offsets(folder / offsets_name, features.shape(0));
  const auto edges = read_edges(folder, offsets);
  GraphFolder<Scalar> result;
  const auto channels = static_cast<Index>(features.shape(1));
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Index nodes = offsets[i + 1] - offsets[i];
    auto part = xt::xarray<Scalar>::from_shape({static_cast<std::size_t>(nodes), features.shape(1)});
    std::copy_n(features.data() + offsets[i] * channels, nodes * channels, part.data());
    result.features.push_back(std::move(part));
    try {
      result.graphs.emplace_back(nodes, edges[i]);
    } catch (const ArgumentError& error) {
      // InputGraph counts nodes within the graph, unlike the file.
      fail_in(folder / edges_name, "graph {} (its nodes counted from 0): {}", i, error.what());
    }
  }
  return result;
}

template <typename Scalar>
void write_graphs(const Path& folder, const GraphFolder<Scalar>& graphs) {
  check_fits(graphs);
  std::vector<Scalar> features;
  std::vector<std::int64_t> offsets{0}, edges;
  std::vector<double> weights;
  for (std::size_t i = 0; i < graphs.graphs.size(); ++i) {
    const InputGraph& graph = graphs.graphs[i];
    const std::int64_t first = offsets.back();
    features.insert(features.end(), graphs.features[i].begin(), graphs.features[i].end());
    // InputGraph keeps incoming edges, so that edges are grouped by target, not in the order in which they were given.
    for (Index target = 0; target < graph.nodes(); ++target)
      for (const auto& [source, weight] : graph.incoming(target)) {
        edges.insert(edges.end(), {first + source, first + target});
        weights.push_back(weight);
      }
    offsets.push_back(first + graph.nodes());
  }
  files::require_may_write(folder);
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const auto& values, std::vector<std::size_t> shape) {
    files::require_no_link(folder / name);
    write_npy(folder / name, values.data(), shape);
  };
  const std::size_t channels = graphs.features[0].shape(1);
  write(features_name, features, {features.size() / channels, channels});
  write(offsets_name, offsets, {offsets.size()});
  write(edges_name, edges, {weights.size(), 2});
  write(weights_name, weights, {weights.size()});
}

template GraphFolder<float> read_graphs(const Path&);
template GraphFolder<double> read_graphs(const Path&);
template void write_graphs(const Path&, const GraphFolder<float>&);
template void write_graphs(const Path&, const GraphFolder<double>&);

}  // namespace widelimit::data
