#pragma once

#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"

namespace widelimit {

/// The covariances of a pair as matrices, and free memory for a stage's scratch.
template <typename Scalar>
struct PairMatrices {
  Scalar* nngp;
  Scalar* ntk;
  Scalar* scratch;
};

/// The kept nodes of the pairs of a tile.
template <typename Scalar>
class PairStores {
 public:
  /// The stores of all pairs are at `begin`, one after the other. The layout must outlive this.
  PairStores(const PairLayout& pair, Scalar* begin) : pair_{pair}, begin_{begin} {}

  [[nodiscard]] const StoreLayout& layout(NodeId node) const { return pair_.stores.layouts[node]; }
  /// A kept node of a pair. Its ntk is null if it is not kept.
  [[nodiscard]] Plane<Scalar> at(NodeId node, Index pair) const;
  /// Sets the entries of a matrix to NaN. Those that are not demanded stay so and cannot be mistaken for results.
  void forget(NodeId node, Index pairs) const;

  /// Copies a plane of `count` pairs, or the whole matrix of one pair, to a slot, guards included. An ntk that is not
  /// kept is written as zeros.
  void load(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
            const Plane<Scalar>& target) const;
  /// Copies planes of `count` pairs from a slot to the store.
  void save(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
            const Plane<Scalar>& source) const;

  /// A kept node's covariances as matrices: those in the store, or ones that are assembled from its planes in
  /// `space`.
  [[nodiscard]] PairMatrices<Scalar> matrices(NodeId node, Index pair, Scalar* space) const;

 private:
  void copy_matrix(NodeId node, Index pair, const Plane<Scalar>& target) const;

  const PairLayout& pair_;
  Scalar* begin_;
};

}  // namespace widelimit
