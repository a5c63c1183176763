#pragma once

#include <map>
#include <span>
#include <vector>

#include "kernel/device/device_states.hpp"
#include "kernel/planes/tile.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Computes the readouts of tiles of pairs on a device, as PlaneExecutor does on the CPU. Every thread has its own
/// queue.
template <typename Scalar>
class DeviceReadouts {
 public:
  /// The plan, which has one for a device, must outlive this.
  DeviceReadouts(const GramPlan& plan, StopRequest stop);

  /// All inputs of a side have one shape and belong to the states of that side.
  void run(const Tile<Scalar>& tile, const DeviceStates<Scalar>& left, const DeviceStates<Scalar>& right);

  struct Entry {
    double nngp = 0;
    double ntk = 0;
  };
  /// The value of a readout for a pair of the last tile.
  [[nodiscard]] const Entry& readout(NodeId node, Index pair) const {
    return entries_.at(node)[static_cast<std::size_t>(pair)];
  }

 private:
  void run(const DevicePair::Step& step, Index pairs, const DeviceStates<Scalar>& left,
           const DeviceStates<Scalar>& right);
  /// Adds up what the work-groups of a launch have left in read_, for its pairs.
  void add_up(const DevicePair::Step& step, std::span<Entry> entries) const;
  /// Takes a new buffer if this one is too small.
  void reserve(opencl::Buffer& buffer, std::size_t bytes) const;

  const GramPlan& plan_;
  const DevicePlan& device_;
  opencl::Queue queue_;
  StopRequest stop_;
  opencl::Buffer pairs_, offsets_, sums_;
  std::vector<Scalar> read_;                      ///< The sums of a launch.
  std::map<NodeId, std::vector<Entry>> entries_;  ///< [readout][pair]
};

}  // namespace widelimit
