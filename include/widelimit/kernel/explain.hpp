#pragma once

#include <cstddef>
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

/// Time on the clock with all threads at work, and the processor time of all of them.
struct Cost {
  double seconds = 0;
  double processor_seconds = 0;
};

/// How gram() will compute the kernels of a network, and what that costs.
struct Plan {
  std::vector<PlanLine> lines;
  double flops = 0;        ///< For a pair, the sum of the lines; a nonlinearity counts 25 for each entry.
  double bytes = 0;        ///< For a pair: kept covariances written and read, and its share of the states.
  double state_bytes = 0;  ///< Kept for every input.
  double workspace_bytes = 0;  ///< For every thread.
  Index tile_side = 1;         ///< Inputs on a side of a tile.
  Index grid = 1;              ///< GramTiles::grid() of so many inputs.
  Index replicates = 1;        ///< Runs of the whole plan, for sampled layers. Costs are those of all.
  Cost pair;                   ///< Measured; 0 if it was not.
  Cost input;                  ///< Measured: making its state.
  Cost start;                  ///< Measured: what is made once, such as the plan, tables and workspaces.
  int threads = 1;             ///< That compute; no more than there are.
  std::string measured_on;     ///< Which inputs were run, for people.
  std::size_t state_memory_bytes = 0;  ///< GramOptions::state_memory_bytes.
  /// The reason why nothing was measured although it was asked for, or why inputs are too large to be computed at all:
  /// the lines then hold upper bounds of the entries, and nothing else is known. Empty otherwise.
  std::string remark;
  std::string device = {};  ///< Where it is computed, and what of it; empty on the CPU.
  /// Of an input in the memory of a device that can multiply without the matrix (KernelProducts); 0 without one.
  double device_input_bytes = 0;

  [[nodiscard]] bool is_measured() const { return pair.seconds > 0; }

  /// Estimated cost of gram() on one batch, n (n + 1) / 2 pairs. States that do not fit into memory are made again.
  [[nodiscard]] Cost of_gram(Index inputs) const;
  /// On two batches.
  [[nodiscard]] Cost of_gram(Index rows, Index columns) const;
  /// Of a store whose tiles have `side` inputs a side; without writing its files.
  [[nodiscard]] Cost of_store(Index inputs, Index side) const;
  [[nodiscard]] Cost of_store(Index rows, Index columns, Index side) const;
  /// of_gram(inputs).seconds
  [[nodiscard]] double seconds(Index inputs) const { return of_gram(inputs).seconds; }

 private:
  [[nodiscard]] Cost cost_of(double states, double pairs) const;
};

enum class StepTimes { none, measured };

/// Explains gram<Scalar>(network, x, options) for `inputs` inputs of a shape with `channels` channels. The times are
/// measured on inputs that resemble data, in the tiles of so many, for about `measure_seconds`, and at least one tile,
/// unless it is 0 or a single pair would take far longer (Plan::remark). Images are smooth, as photographs are, vectors
/// and sequences independent normal numbers. With StepTimes::measured they are run once more to time every line.
/// Scalar is float or double. This takes a second whatever the sizes are.
///
/// Throws NetworkError if the network cannot be applied to such inputs; ArgumentError for channels < 1, inputs < 1 or
/// options out of range.
template <typename Scalar>
[[nodiscard]] Plan explain(const Network& network, const Shape& input, Index channels,
                           const GramOptions& options = {}, double measure_seconds = 0.5,
                           StepTimes times = StepTimes::none, Index inputs = 1000);

/// The same for inputs that are at hand, some of which are run: attention costs less for smooth images than for noisy
/// ones. `inputs`: how many there will be, 0 for those of x. Of inputs that differ in shape, the lines are those of the
/// largest one, Plan::state_bytes is a mean, and times are those of pairs of x.
template <typename Scalar>
[[nodiscard]] Plan explain(const Network& network, const Inputs<Scalar>& x, const GramOptions& options = {},
                           double measure_seconds = 0.5, StepTimes times = StepTimes::none, Index inputs = 0);

/// A table with one line for each step, and the costs.
[[nodiscard]] std::string to_string(const Plan& plan);

}  // namespace widelimit
