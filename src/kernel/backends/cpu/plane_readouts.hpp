#pragma once

#include "kernel/backends/cpu/planes/plane_executor.hpp"
#include "kernel/backends/tile_readouts.hpp"

namespace widelimit {

/// Readouts that the CPU computes, plane by plane.
template <typename Scalar>
class PlaneReadouts final : public TileReadouts<Scalar> {
 public:
  /// The program must outlive this. Tiles have at most `most_pairs` pairs.
  PlaneReadouts(const Program& program, const PairDemand& demand, Index most_pairs, StopRequest stop)
      : planes_(program, demand, most_pairs, stop) {}

  void run(const Tile<Scalar>& tile, const StateBlock<Scalar>& /*left*/,
           const StateBlock<Scalar>& /*right*/) override {
    planes_.run(tile);
  }
  [[nodiscard]] typename TileReadouts<Scalar>::Entry readout(NodeId node, Index pair) const override {
    const auto [nngp, ntk] = planes_.readout(node, pair);
    return {static_cast<double>(nngp), static_cast<double>(ntk)};
  }
  [[nodiscard]] StepTimer* timer() override { return &planes_.timer(); }

 private:
  PlaneExecutor<Scalar> planes_;
};

}  // namespace widelimit
