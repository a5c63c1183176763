#pragma once

#include <vector>

#include "network/plane_mapping.hpp"

namespace widelimit {

/// Entry (position, position + the plane's offset) times `weight` is added to entry (row, row + offset) after the map.
struct AxisTerm {
  Index offset;
  Index row;
  Index position;
  double weight;
};

/// Maps of positions along one axis of a left and of a right input: which offsets lead to which.
class AxisMapping {
 public:
  AxisMapping(const SparseAxis& left, const SparseAxis& right);

  /// Offsets before the map that the wanted ones after it need, in order.
  [[nodiscard]] std::vector<Index> offsets_in_front(const std::vector<Index>& wanted) const;

  /// What the plane of an offset before the map adds to: by offset, row and position.
  [[nodiscard]] std::vector<AxisTerm> terms(Index offset) const;

 private:
  SparseAxis left_, right_;
  SparseAxis left_readers_, right_readers_;  ///< Transposed: the rows that read a position.
};

}  // namespace widelimit
