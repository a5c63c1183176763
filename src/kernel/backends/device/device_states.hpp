#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "opencl/session.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

class DevicePlan;
struct GramPlan;

/// The states of a block of inputs in the memory of a device, or of each of several. What row stages need of variances
/// is computed there, by the operations that pairs pass through: so equal inputs have exactly the covariances that
/// their variances say.
template <typename Scalar>
class DeviceStates {
 public:
  /// Copies the states and records them on the device.
  DeviceStates(const GramPlan& plan, const StateBlock<Scalar>& block, StopRequest stop);

  /// `device`: its number in the plan.
  [[nodiscard]] const opencl::Buffer& buffer(std::size_t device) const { return places_[device].buffer; }
  /// What pairs of inputs without positions need (VectorSource), [number][count()].
  [[nodiscard]] const opencl::Buffer& numbers(std::size_t device) const { return places_[device].numbers; }
  [[nodiscard]] Index count() const { return count_; }
  /// Where a state of the block begins.
  [[nodiscard]] std::uint64_t place(const InputState<Scalar>& state) const {
    return static_cast<std::uint64_t>(state.numbers() - first_);
  }

 private:
  /// In the memory of one device.
  struct Place {
    opencl::Buffer buffer, numbers;
  };

  void record_vectors(const DevicePlan& plan, opencl::Session& session, Place& place);
  void record_positions(const GramPlan& plan, opencl::Session& session, const Place& place,
                        const StateBlock<Scalar>& block, StopRequest stop);

  const Scalar* first_;
  Index count_;
  std::vector<Place> places_;
};

}  // namespace widelimit
