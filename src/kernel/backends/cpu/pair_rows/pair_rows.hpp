#pragma once

#include <span>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

/// A left input of a tile, and how it relates to the right inputs.
template <typename Scalar>
struct PairRow {
  const InputState<Scalar>* left;
  Index same;                    ///< Its index among the right inputs, or -1.
  std::vector<Index> multiples;  ///< Indices of right inputs that are multiples of it, not itself.
};

/// Some rows of a tile: left inputs, each with all right inputs, one row after the other.
template <typename Scalar>
struct PairRows {
  std::span<const PairRow<Scalar>> rows;
  std::span<const InputState<Scalar>* const> right;

  /// The distance from one row to the next.
  [[nodiscard]] Index step() const { return padded(static_cast<Index>(right.size())); }
  [[nodiscard]] std::size_t size() const { return rows.size() * static_cast<std::size_t>(step()); }
  /// Calls body(row, place) for every row, where it begins at `place`.
  template <typename Body>
  void for_each(const Body& body) const {
    Index place = 0;
    for (const PairRow<Scalar>& row : rows) {
      body(row, place);
      place += step();
    }
  }
};

}  // namespace widelimit
