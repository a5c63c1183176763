#pragma once

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "opencl/session.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

class DevicePlan;
struct GramPlan;

/// The states of a block of inputs in a device's memory. What row stages need of variances is computed there, by the
/// operations that pairs pass through: so equal inputs have exactly the covariances that their variances say.
template <typename Scalar>
class DeviceStates {
 public:
  /// Copies the states and records them on the device.
  DeviceStates(const GramPlan& plan, const StateBlock<Scalar>& block, StopRequest stop);

  [[nodiscard]] const opencl::Buffer& buffer() const { return buffer_; }
  /// What pairs of inputs without positions need (VectorSource), [number][count()].
  [[nodiscard]] const opencl::Buffer& numbers() const { return numbers_; }
  [[nodiscard]] Index count() const { return count_; }
  /// Where a state of the block begins.
  [[nodiscard]] std::uint64_t place(const InputState<Scalar>& state) const {
    return static_cast<std::uint64_t>(state.numbers() - first_);
  }

 private:
  void record_vectors(const DevicePlan& device, opencl::Queue& queue);
  void record_positions(const GramPlan& plan, const StateBlock<Scalar>& block, StopRequest stop);

  const Scalar* first_;
  Index count_;
  opencl::Buffer buffer_, numbers_;
};

}  // namespace widelimit
