#pragma once

#include <algorithm>
#include <vector>

#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

/// The sums over the planes of readouts, in double, for every pair of a tile.
template <typename Scalar>
class ReadoutSums {
 public:
  struct Sum {
    double nngp = 0;
    double ntk = 0;
  };

  /// Has room for all readouts of the graph, for tiles of at most `pairs` pairs.
  ReadoutSums(const Graph& graph, Index pairs) : sums_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id)
      if (reads_out(graph.nodes[id].operation)) sums_[id].resize(static_cast<std::size_t>(pairs));
  }

  void clear(NodeId readout, Index pairs) { std::fill_n(sums_[readout].begin(), pairs, Sum{}); }

  /// Adds the first `size` numbers of a plane.
  void add(NodeId readout, Index pair, const Plane<Scalar>& plane, Index size) {
    const auto numbers = static_cast<std::size_t>(size);
    Sum& sum = sums_[readout][static_cast<std::size_t>(pair)];
    sum.nngp += numerics::linear_rows<Scalar>().sum(plane.nngp, numbers);
    if (plane.ntk != nullptr) sum.ntk += numerics::linear_rows<Scalar>().sum(plane.ntk, numbers);
  }

  /// The value of a readout: the sum, or the mean over the positions that it reads.
  [[nodiscard]] Sum value(const PairLayout& layout, NodeId readout, Index pair) const {
    const Sum& sum = sums_[readout][static_cast<std::size_t>(pair)];
    const double weight = readout_weight(layout.program.graph, layout.geometry, readout);
    return {weight * sum.nngp, weight * sum.ntk};
  }

 private:
  std::vector<std::vector<Sum>> sums_;  ///< [node][pair]
};

}  // namespace widelimit
