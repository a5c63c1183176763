#pragma once

#include <string>
#include <vector>

#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// One step of a plan: a layer, or one of several operations into which it was lowered.
struct PlanLine {
  std::string layer;      ///< Path and kind of the layer that it comes from.
  std::string operation;  ///< The operation.
  /// Where the result goes: "fused" into the loop of the lines below, "kept" for the pair as planes or as a
  /// matrix, or "number" after the positions are gone.
  std::string storage;
  std::string demand;  ///< Which offsets between positions are computed.
  double entries = 0;  ///< Covariance entries computed for a pair, of each kernel.
  double flops = 0;    ///< Floating-point operations for a pair, of all kernels; 0 if not known.
  double seconds = 0;  ///< Measured for a pair, summed over threads; 0 if it was not.
};

/// How gram() will compute the kernels of a network, and what that costs.
struct Plan {
  std::vector<PlanLine> lines;
  double flops = 0;        ///< For a pair, the sum of the lines; a nonlinearity counts 25 for each entry.
  double bytes = 0;        ///< For a pair: kept covariances written and read, and its share of the states.
  double state_bytes = 0;  ///< Kept for every input.
  double workspace_bytes = 0;   ///< For every thread.
  Index replicates = 1;         ///< Runs of the whole plan, for sampled layers.
  double seconds_per_pair = 0;  ///< Measured, all replicates; 0 if it was not.
  /// The reason why nothing was measured although it was asked for, or why inputs are too large to be computed at all:
  /// the lines then hold upper bounds of the entries, and nothing else is known. Empty otherwise.
  std::string remark;
  std::string device = {};  ///< Where it is computed, and what of it; empty on the CPU.

  /// Estimated time of gram() on one batch, n (n + 1) / 2 pairs.
  [[nodiscard]] double seconds(Index inputs) const {
    const auto n = static_cast<double>(inputs);
    return seconds_per_pair * n * (n + 1) / 2;
  }
};

enum class StepTimes { none, measured };

/// Explains gram<Scalar>(network, x, options) for inputs of a shape with `channels` channels. For
/// seconds_per_pair, random inputs are run for about `measure_seconds`, and at least one pair, unless it is 0 or
/// a single pair would take far longer (Plan::remark). With StepTimes::measured they are run once more to time
/// every line. Scalar is float or double. This takes a second whatever the sizes are.
///
/// Throws NetworkError if the network cannot be applied to such inputs; ArgumentError for channels < 1 or
/// options out of range.
template <typename Scalar>
[[nodiscard]] Plan explain(const Network& network, const Shape& input, Index channels,
                           const GramOptions& options = {}, double measure_seconds = 0.5,
                           StepTimes times = StepTimes::none);

/// A table with one line for each step, and the costs.
[[nodiscard]] std::string to_string(const Plan& plan);

}  // namespace widelimit
