#pragma once

#include <array>
#include <vector>

#include "kernel/plan/demand.hpp"
#include "kernel/plan/geometry.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

/// How the offset of an instruction follows from that of its chain's root: stride * offset + shift.
struct OffsetMap {
  Index3 stride{1, 1, 1};
  Index3 shift{0, 0, 0};

  [[nodiscard]] bool operator==(const OffsetMap&) const = default;
};

/// The map of every instruction of a chain, for nodes of these sizes.
std::vector<OffsetMap> offset_maps(const Program& program, const Chain& chain,
                                   const std::vector<Index3>& left_sizes,
                                   const std::vector<Index3>& right_sizes);

/// One offset along an axis, or two that complement each other. For two axes of length d these are delta and delta -
/// d: the positions of the left axis that one of them leaves free are those of the other.
struct AxisOffsets {
  std::array<Index, 2> offset;
  Index count;

  [[nodiscard]] bool operator==(const AxisOffsets&) const = default;
};

/// Offsets along every axis: what a plane is evaluated for.
using PlaneOffsets = std::array<AxisOffsets, 3>;

/// What a plane step's chain needs to know of the shapes of a pair.
struct ChainGeometry {
  /// The farthest shift, along each axis, of its same-padded convolutions.
  Index3 guard{0, 0, 0};
  /// Whether planes of complementary offsets are laid out as one. The gaps between their pieces are the guards of the
  /// root, times the stride, so that a strided window finds every piece where it expects it.
  bool complements = false;
  std::vector<OffsetMap> maps;  ///< [instruction]
  /// The demanded offsets of the root along every axis in the order of execution.
  std::array<std::vector<AxisOffsets>, 3> offsets{};

  /// Guards between the pieces of an instruction's planes; 0 where all are of one piece.
  [[nodiscard]] Index gap(std::size_t instruction, std::size_t axis) const {
    return complements ? maps[instruction].stride[axis] * guard[axis] : 0;
  }
};

/// Everything that depends on the shapes of a pair of inputs, but not on their values.
struct PairGeometry {
  PairShapes shapes;
  std::vector<Index3> left_sizes;  ///< shapes.left of every node, with three axes.
  std::vector<Index3> right_sizes;
  std::vector<Offsets> demanded;
  std::vector<ChainGeometry> chains;  ///< [step]; those of other steps are empty.

  /// The number of covariance entries that are demanded of a node.
  [[nodiscard]] double entries(NodeId node) const;
  /// True if enough planes of a chain share their rows for strips to pay: all offsets that agree along the last axis
  /// do.
  [[nodiscard]] bool uses_strips(NodeId root) const {
    return demanded[root].axis[0].size() * demanded[root].axis[1].size() > 2;
  }
};

/// The factor of a readout's sum over the entries of its input.
[[nodiscard]] double readout_weight(const Graph& graph, const PairGeometry& geometry, NodeId readout);

enum class Kernel { nngp_only, with_ntk };

/// See ChainGeometry::guard.
Index3 chain_guard(const Program& program, const Chain& chain);

PairGeometry make_geometry(const Program& program, const Shape& left, const Shape& right, Purpose purpose,
                           bool demand_everything);

}  // namespace widelimit
