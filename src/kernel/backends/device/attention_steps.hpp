#pragma once

#include <vector>

#include "kernel/backends/device/device_steps.hpp"
#include "kernel/backends/device/kept_planes.hpp"
#include "kernel/backends/device/matrix_source.hpp"

namespace widelimit {

/// A pair stage that devices compute from the covariance between all positions: attention, norms over some axes, or a
/// readout that is pulled back through attention at 1/width.
[[nodiscard]] bool is_matrix_stage(const Operation& operation);
/// Whether it is such a readout. The sums of its steps are those of the readout after it, and nothing is kept.
[[nodiscard]] bool is_pulled_readout(const Operation& operation);

/// A matrix stage in the program of some pairs.
struct MatrixStage {
  const Program& program;
  NodeId node;
  const PairGeometry& geometry;
  const StateLayout &left, &right;
};

/// Entries that a work-item computes before another work-group takes a share of the pair.
constexpr Index matrix_entries_of_item = 8;

/// A kernel of a stage; a work-group takes `of_group` of its results before others take turns.
[[nodiscard]] DeviceStep matrix_step(const MatrixStage& stage, MatrixKernel kernel, Index of_group);

/// Numbers of one kernel of a pair that its steps leave to each other.
[[nodiscard]] Index matrix_stage_numbers(const MatrixStage& stage, const ChainSourceOptions& options);

/// The steps of a stage; what they leave to each other begins at `first`.
std::vector<DeviceStep> matrix_stage_steps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                                           const ChainSourceOptions& options);

/// The step in which an input that meets itself leaves in its state what pairs read there; none if the CPU prepares it.
std::optional<DeviceStep> matrix_stage_record(const MatrixStage& stage, const KeptNodes& kept,
                                              const ChainSourceOptions& options);

}  // namespace widelimit
