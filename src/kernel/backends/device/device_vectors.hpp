#pragma once

#include <limits>

#include "kernel/backends/device/device_states.hpp"
#include "kernel/backends/tile_backend.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Computes tiles of pairs of inputs without positions on a device, from the products of their vectors to the output.
/// Every thread has its own queue, on the next one of several devices.
template <typename Scalar>
class DeviceVectors final : public TileBackend<Scalar> {
 public:
  /// The plan, which has one for a device, must outlive this.
  DeviceVectors(const GramPlan& plan, StopRequest stop);

  void begin(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches) override;
  [[nodiscard]] Index rows_at_once() const override { return std::numeric_limits<Index>::max(); }
  [[nodiscard]] TileRows<Scalar> rows(Index first, Index end) override;
  /// All pairs of a few inputs are computed together.
  void diagonal(const StateRange<Scalar>& inputs, const typename TileBackend<Scalar>::Visit& visit) override;

 private:
  /// Inputs [begin, end) of a block whose states are on the device, counted from its first one.
  struct Side {
    const DeviceStates<Scalar>& states;
    Index begin, end;

    [[nodiscard]] Index size() const { return end - begin; }
  };

  [[nodiscard]] static Side side(const StateRange<Scalar>& range);
  /// Computes all pairs; `symmetric`: both sides are one batch, so that a pair may be an input with itself.
  void run(const Side& left, const Side& right, bool symmetric);
  /// The values of a left input of the last tile with all right ones.
  [[nodiscard]] Plane<Scalar> row(Index left);
  void multiply(std::size_t source, const Side& left, const Side& right, bool symmetric);
  void evaluate(const Side& left, const Side& right, bool symmetric);

  const GramPlan& plan_;
  const DevicePlan& device_;
  std::size_t number_;  ///< Of the device, among several.
  opencl::Queue queue_;
  StopRequest stop_;
  opencl::Buffer products_, multiples_, values_;
  std::shared_ptr<const opencl::Buffer> smooth_;  ///< SmoothTables, while a kernel reads them.
  opencl::HostMemory read_;                       ///< [NNGP, NTK][row][column]
  Index rows_ = 0, columns_ = 0;
};

}  // namespace widelimit
