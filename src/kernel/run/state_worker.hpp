#pragma once

#include <functional>
#include <span>

#include "kernel/backends/cpu/pair_rows/pair_row_executor.hpp"
#include "kernel/backends/cpu/planes/plane_executor.hpp"
#include "kernel/backends/gram_plan.hpp"

namespace widelimit {

/// Makes the states of inputs. Every thread has its own.
template <typename Scalar>
class StateWorker {
 public:
  /// States need no NTK unless the plan says so. With Kernel::with_ntk, run() names the layer where the NTK of an
  /// input with itself leaves the range.
  StateWorker(const GramPlan& plan, StopRequest stop, Kernel kernel = Kernel::nngp_only);

  /// `input` is [spatial..., C]. Throws NumericalError, naming the layer, for numbers out of range.
  void run(std::span<const Scalar> input, InputState<Scalar>& state);

  /// Records once more what comes after the positions, from readouts of the input with itself that were computed
  /// elsewhere: readout(node) for each.
  using Readout = std::function<FeatureStage::Values(NodeId node)>;
  void record_pair_rows(InputState<Scalar>& state, const Readout& readout);

 private:
  [[nodiscard]] Scalar record_variance(NodeId node, InputState<Scalar>& state) const;
  void write_features(std::span<const Scalar> input, InputState<Scalar>& state) const;

  const GramPlan& plan_;
  PlaneExecutor<Scalar> planes_;
  PairRowExecutor<Scalar> pair_rows_;
};

}  // namespace widelimit
