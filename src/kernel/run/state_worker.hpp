#pragma once

#include <span>

#include "kernel/planes/plane_executor.hpp"
#include "kernel/points/point_executor.hpp"
#include "kernel/run/gram_plan.hpp"

namespace widelimit {

/// Makes the states of inputs. One a thread.
template <typename Scalar>
class StateWorker {
 public:
  explicit StateWorker(const GramPlan& plan);

  /// `input` is [spatial..., C].
  void run(std::span<const Scalar> input, InputState<Scalar>& state);

 private:
  [[nodiscard]] Scalar record_variance(NodeId node, InputState<Scalar>& state) const;
  void write_features(std::span<const Scalar> input, InputState<Scalar>& state) const;

  const GramPlan& plan_;
  PlaneExecutor<Scalar> planes_;
  PointExecutor<Scalar> points_;
};

}  // namespace widelimit
