#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernel/backends/device/device_steps.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "opencl/session.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Launches the steps of pairs on a device. Every thread has its own queue.
template <typename Scalar>
class DeviceLauncher {
 public:
  /// The session and the tables must outlive this. `group`: work-items of a work-group of steps without a form.
  DeviceLauncher(opencl::Session& session, Index group, SmoothTables& smooth, StopRequest stop);

  /// Two states, by their places, and whether they are one input's.
  struct Pair {
    std::uint64_t left, right, same;
  };
  /// use(step, first pair, sums): the sums that a step leaves for some pairs, [pair][share][4].
  using UseSums = std::function<void(const DeviceStep& step, Index first, std::span<const Scalar> sums)>;

  void run(const DevicePair& steps, std::span<const Pair> pairs, const opencl::Buffer& left,
           const opencl::Buffer& right, const UseSums& use);

 private:
  struct Launch {
    const opencl::Buffer &left, &right;
    Index first, count;
  };
  [[nodiscard]] Index pairs_at_once(const DevicePair& steps) const;
  void run(const DeviceStep& step, const Launch& launch, const UseSums& use);
  /// The table of a step in the device's memory.
  [[nodiscard]] const opencl::Buffer& table(const DeviceStep& step);

  opencl::Session& session_;
  Index group_;
  SmoothTables& smooth_;
  StopRequest stop_;
  opencl::Queue queue_;
  opencl::Buffer pairs_, offsets_, sums_, kept_;
  std::shared_ptr<const opencl::Buffer> smooth_numbers_;  ///< Of this run.
  /// Tables of steps that were launched; these outlive the plan's steps.
  std::map<std::shared_ptr<const std::vector<double>>, opencl::Buffer> tables_;
  std::vector<Scalar> read_;  ///< The sums of a launch.
};

}  // namespace widelimit
