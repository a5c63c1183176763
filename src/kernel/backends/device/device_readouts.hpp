#pragma once

#include <map>
#include <span>
#include <vector>

#include "kernel/backends/device/device_launcher.hpp"
#include "kernel/backends/device/device_states.hpp"
#include "kernel/backends/tile_readouts.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Computes the readouts of tiles of pairs on a device, the next one of several, as PlaneExecutor does on the CPU.
/// Every thread has its own queue.
template <typename Scalar>
class DeviceReadouts final : public TileReadouts<Scalar> {
 public:
  /// The plan, which has one for a device, must outlive this.
  DeviceReadouts(const GramPlan& plan, StopRequest stop);

  /// All inputs of a side have one shape and belong to the states of that side.
  void run(const Tile<Scalar>& tile, const DeviceStates<Scalar>& left, const DeviceStates<Scalar>& right);
  void run(const Tile<Scalar>& tile, const StateBlock<Scalar>& left,
           const StateBlock<Scalar>& right) override {
    run(tile, *left.on_device(), *right.on_device());
  }

  using Entry = typename TileReadouts<Scalar>::Entry;
  [[nodiscard]] Entry readout(NodeId node, Index pair) const override {
    return entries_.at(node)[static_cast<std::size_t>(pair)];
  }

 private:
  using Pair = typename DeviceLauncher<Scalar>::Pair;
  /// Has the plan measure its form by some pairs of a tile.
  void choose_form(const Tile<Scalar>& tile, std::span<const Pair> pairs, const opencl::Buffer& left,
                   const opencl::Buffer& right);
  /// Adds up what the work-groups of a launch have left for its pairs.
  void add_up(const DeviceStep& step, Index first, std::span<const Scalar> sums);

  const GramPlan& plan_;
  std::size_t device_;  ///< Its number.
  DeviceLauncher<Scalar> launcher_;
  std::map<NodeId, std::vector<Entry>> entries_;  ///< [readout][pair]
};

}  // namespace widelimit
