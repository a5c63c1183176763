#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A matrix over the positions of one axis with few entries: row a has those from begin[a] to begin[a + 1] - 1, in the
/// order of their columns.
struct SparseAxis {
  Index columns = 0;
  std::vector<std::size_t> begin{0};
  std::vector<Index> column = {};
  std::vector<double> weight = {};

  [[nodiscard]] Index rows() const { return static_cast<Index>(begin.size()) - 1; }
};

/// Another face of pair stages K' = M K M'^T, M a product of sparse matrices, one an axis: planes of offsets can be
/// mapped one by one, as they are finished.
class PlaneMapping {
 public:
  virtual ~PlaneMapping() = default;

  /// The axes of an input of this shape, leading ones of a single position in front, so that there are three.
  [[nodiscard]] virtual std::array<SparseAxis, 3> sparse_axes(const Shape& input) const = 0;
};

[[nodiscard]] inline const PlaneMapping* plane_mapping(const PairStage& stage) {
  return dynamic_cast<const PlaneMapping*>(&stage);
}

}  // namespace widelimit
