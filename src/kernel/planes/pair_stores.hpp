#pragma once

#include "kernel/planes/pair_layout.hpp"
#include "kernel/planes/placed_plane.hpp"
#include "kernel/planes/plane.hpp"

namespace widelimit {

/// The covariances of a pair as matrices, and free space after them.
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
  /// `begin`: room for the stores of all pairs. The layout must outlive this.
  PairStores(const PairLayout& pair, Scalar* begin) : pair_{pair}, begin_{begin} {}

  [[nodiscard]] const StoreLayout& layout(NodeId node) const { return pair_.stores.layouts[node]; }
  /// A kept node of a pair; its ntk is null if it is not kept.
  [[nodiscard]] Plane<Scalar> at(NodeId node, Index pair) const;
  /// Entries of a matrix that nobody asks for must not be mistaken for results: they are NaN.
  void forget(NodeId node, Index pairs) const;

  /// Copies a plane of `count` pairs to a slot, guards included; or the matrix of one. An ntk that is not kept is zero.
  void load(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
            const Plane<Scalar>& target) const;
  /// The other way.
  void save(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
            const Plane<Scalar>& source) const;

  /// A kept node's covariances as matrices: where they are, or put together from its planes in `space`.
  [[nodiscard]] PairMatrices<Scalar> matrices(NodeId node, Index pair, Scalar* space) const;

 private:
  void copy_matrix(NodeId node, Index pair, const Plane<Scalar>& target) const;

  const PairLayout& pair_;
  Scalar* begin_;
};

}  // namespace widelimit
