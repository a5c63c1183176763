#pragma once

#include "kernel/backends/cpu/planes/plane_sizes.hpp"
#include "kernel/backends/cpu/planes/store_places.hpp"
#include "kernel/plan/pair_geometry.hpp"

namespace widelimit {

/// What is computed of pairs.
struct PairDemand {
  Purpose purpose;
  Kernel kernel;
  bool everything;  ///< All offsets, whether they are needed or not.
};

/// Everything about a pair that follows from the shapes of its inputs: which offsets are computed, where kept nodes
/// are stored, and how large planes are. The program must outlive it.
struct PairLayout {
  const Program& program;
  Purpose purpose;
  Kernel kernel;
  PairGeometry geometry;
  StorePlaces stores;
  PlaneSizes planes;

  PairLayout(const Program& pair_program, const PairDemand& demand, const Shape& left, const Shape& right);

  [[nodiscard]] bool with_ntk() const { return kernel == Kernel::with_ntk; }
  [[nodiscard]] const Node& node(NodeId id) const { return program.graph.nodes[id]; }
  /// The input of a node that has exactly one.
  [[nodiscard]] NodeId input_of(NodeId id) const { return node(id).inputs[0]; }
};

}  // namespace widelimit
