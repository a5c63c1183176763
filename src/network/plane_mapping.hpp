#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// A matrix over the positions of one axis that has few entries, in compressed rows. Row a has the entries begin[a]
/// to begin[a + 1] - 1, in the order of their columns.
struct SparseAxis {
  Index columns = 0;
  std::vector<std::size_t> begin{0};
  std::vector<Index> column = {};
  std::vector<double> weight = {};

  [[nodiscard]] Index rows() const { return static_cast<Index>(begin.size()) - 1; }
};

/// An additional interface of pair stages K' = M K M'^T whose matrices can be read: M is a Kronecker product of one
/// matrix for each axis.
class PositionMatrices {
 public:
  virtual ~PositionMatrices() = default;

  /// The matrices for an input of this shape. Axes of a single position are put in front so that there are always
  /// three.
  [[nodiscard]] virtual std::array<SparseAxis, 3> matrices(const Shape& input) const = 0;
};

/// An additional interface of pair stages K' = M K M'^T where M is a Kronecker product of sparse matrices, one for
/// each axis. The engine can map their planes of offsets one by one, as they are finished, without the whole
/// covariance.
class PlaneMapping {
 public:
  virtual ~PlaneMapping() = default;

  /// The matrices for an input of this shape. Axes of a single position are put in front so that there are always
  /// three.
  [[nodiscard]] virtual std::array<SparseAxis, 3> sparse_axes(const Shape& input) const = 0;
};

/// The stage by its additional interface, or null if it has none or there is no stage.
[[nodiscard]] inline const PlaneMapping* plane_mapping(const PairStage* stage) {
  return dynamic_cast<const PlaneMapping*>(stage);
}

}  // namespace widelimit
