#pragma once

#include <filesystem>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/network/input_graph.hpp"

/// A folder of .npy arrays with graphs, for all of them together (docs/graphs.md):
///     node_features.npy  [nodes, channels]  numbers; the nodes of a graph are contiguous
///     graph_offsets.npy  [graphs + 1]       integers: graph i has the nodes offsets[i] to offsets[i + 1] - 1
///     edges.npy          [edges, 2]         integers: source and target, numbers of rows of node_features
///     edge_weights.npy   [edges]            numbers; without this file, all weights are 1
/// Edges are directed: those of an undirected graph are listed in both directions.
namespace widelimit::data {

template <typename Scalar>
struct GraphFolder {
  std::vector<xt::xarray<Scalar>> features;  ///< [nodes, channels] of each graph.
  std::vector<InputGraph> graphs;
};

/// Scalar is float or double.
/// Errors  DataError, naming the file and the row, for files that read_npy_as() rejects, arrays of another shape,
///         numbers that are not finite, graphs without nodes, edges between nodes that do not exist or belong to
///         different graphs, and edges that occur twice.
template <typename Scalar>
[[nodiscard]] GraphFolder<Scalar> read_graphs(const std::filesystem::path& folder);

/// Writes the same files, always including edge_weights.npy; the folder is created if it is missing.
/// Errors  ArgumentError unless there is a graph for each of the features, with as many nodes, and all have equally
///         many channels; DataError as write_npy().
template <typename Scalar>
void write_graphs(const std::filesystem::path& folder, const GraphFolder<Scalar>& graphs);

}  // namespace widelimit::data
