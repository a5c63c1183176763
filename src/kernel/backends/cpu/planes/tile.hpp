#pragma once

#include <algorithm>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"

namespace widelimit {

/// Numbers of inputs on the two sides of a tile.
struct TileSize {
  Index left;
  Index right;

  [[nodiscard]] Index pairs() const { return left * right; }
  [[nodiscard]] bool holds(const TileSize& other) const { return other.left <= left && other.right <= right; }
  /// The smallest size that holds both.
  [[nodiscard]] TileSize joined(const TileSize& other) const {
    return {std::max(left, other.left), std::max(right, other.right)};
  }
};

/// A pair of a tile, by indices into its sides.
struct TilePair {
  Index left;
  Index right;
  bool same_input;
};

/// Some pairs of inputs of equal geometry that are executed together, best in the order of for_each_pair().
template <typename Scalar>
struct Tile {
  std::vector<const InputState<Scalar>*> left;
  std::vector<const InputState<Scalar>*> right;
  std::vector<TilePair> pairs;

  [[nodiscard]] Index pair_count() const { return static_cast<Index>(pairs.size()); }
  [[nodiscard]] const TilePair& pair(Index number) const { return pairs[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const InputState<Scalar>& left_of(Index pair_number) const {
    return *left[static_cast<std::size_t>(pair(pair_number).left)];
  }
  [[nodiscard]] const InputState<Scalar>& right_of(Index pair_number) const {
    return *right[static_cast<std::size_t>(pair(pair_number).right)];
  }
};

/// Calls body(left, right) for all pairs of `left` and `right` inputs, along one wrapped diagonal after the other.
/// Neighbours on a diagonal are stacked: both their inputs are neighbours, so that auxiliary arrays need not be
/// repeated.
template <typename Body>
void for_each_pair(Index left, Index right, const Body& body) {
  for (Index diagonal = 0; diagonal < right; ++diagonal)
    for (Index i = 0; i < left; ++i) body(i, (i + diagonal) % right);
}

}  // namespace widelimit
