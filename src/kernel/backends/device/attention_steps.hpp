#pragma once

#include <vector>

#include "kernel/backends/device/device_steps.hpp"
#include "kernel/backends/device/kept_planes.hpp"

namespace widelimit {

/// A pair stage that devices compute as matrix products over positions: 1/width attention, or a readout that is pulled
/// back through it.
[[nodiscard]] bool is_matrix_stage(const Operation& operation);
/// Whether it is such a readout. The sums of its steps are those of the ReadoutNode after it, and nothing is kept.
[[nodiscard]] bool is_pulled_readout(const Operation& operation);

/// A matrix stage in the program of some pairs.
struct MatrixStage {
  const Program& program;
  NodeId node;
  const PairGeometry& geometry;
  const StateLayout &left, &right;
};

/// Numbers of one kernel of a pair that its steps leave to each other.
[[nodiscard]] Index matrix_stage_numbers(const MatrixStage& stage);

/// The steps of a stage; what they leave to each other begins at `first`.
std::vector<DeviceStep> matrix_stage_steps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                                           const ChainSourceOptions& options);

}  // namespace widelimit
