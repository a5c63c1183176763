#pragma once

#include <string>
#include <vector>

#include "kernel/backends/device/attention_steps.hpp"
#include "network/dual_attention_stage.hpp"

/// 1/sqrt(width) attention as steps of a device.
namespace widelimit {

/// The stage of an operation; null for others.
[[nodiscard]] const DualAttentionStage* dual_attention(const Operation& operation);

/// Why devices cannot compute such a stage; empty if they can.
[[nodiscard]] std::string dual_attention_gap(const DualAttentionStage& stage);

/// Numbers of one kernel of a pair that its steps leave to each other.
[[nodiscard]] Index dual_attention_numbers(const DualAttentionStage& attention, Index entries,
                                           numerics::formula::Precision precision);

/// The steps of a stage; what they leave to each other begins at `first`.
std::vector<DeviceStep> dual_attention_steps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                                             const ChainSourceOptions& options);

/// The step in which an input that meets itself leaves the variances that pairs read in its state; none if they read
/// none.
std::optional<DeviceStep> dual_attention_record(const MatrixStage& stage, const KeptNodes& kept,
                                                const ChainSourceOptions& options);

/// Throws NumericalError, naming the layer, if the dual is not right in a precision for logits of an input, whose
/// largest variance K~_aa this is. The CPU computes them in double.
void check_logits(const Node& node, double variance, numerics::formula::Precision precision);

}  // namespace widelimit
