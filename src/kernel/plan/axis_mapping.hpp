#pragma once

#include <vector>

#include "network/plane_mapping.hpp"

namespace widelimit {

/// One term of a map: entry (position, position + the plane's offset) before it, times `weight`, is added to entry
/// (row, row + offset) after it.
struct AxisTerm {
  Index offset;
  Index row;
  Index position;
  double weight;
};

/// The maps of positions along one axis of a left and of a right input, seen from the offsets: which ones before the
/// map lead to which ones after it. The schedule of demand and planes/plane_map.* use it.
class AxisMapping {
 public:
  AxisMapping(const SparseAxis& left, const SparseAxis& right);

  /// The offsets before the map that the wanted ones after it need, in ascending order.
  [[nodiscard]] std::vector<Index> offsets_in_front(const std::vector<Index>& wanted) const;

  /// The terms of the plane of an offset before the map, sorted by offset, row and position.
  [[nodiscard]] std::vector<AxisTerm> terms(Index offset) const;

 private:
  SparseAxis left_, right_;
  SparseAxis left_readers_, right_readers_;  ///< Transposed: the rows that read a position.
};

}  // namespace widelimit
