#pragma once

#include "kernel/device/device_plan.hpp"
#include "kernel/planes/input_state.hpp"

namespace widelimit {

/// The states of a block of inputs in a device's memory. What row stages need of variances is computed there, by the
/// operations that pairs pass through: so equal inputs have exactly the covariances that their variances say.
template <typename Scalar>
class DeviceStates {
 public:
  /// Copies the states and records them on the device.
  DeviceStates(const GramPlan& plan, const StateBlock<Scalar>& block);

  [[nodiscard]] const opencl::Buffer& buffer() const { return buffer_; }
  /// Where a state of the block begins.
  [[nodiscard]] std::uint64_t place(const InputState<Scalar>& state) const {
    return static_cast<std::uint64_t>(state.numbers() - first_);
  }

 private:
  const Scalar* first_;
  opencl::Buffer buffer_;
};

}  // namespace widelimit
