#include "kernel/run/make_tile_backend.hpp"

#include <utility>

#include "kernel/backends/cpu/pair_row_backend.hpp"
#include "kernel/backends/cpu/planes/plane_executor.hpp"
#include "kernel/backends/device/device_readouts.hpp"
#include "kernel/backends/device/device_vectors.hpp"
#include "kernel/backends/gram_plan.hpp"
#include "kernel/backends/tile_readouts.hpp"

namespace widelimit {
namespace {

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

/// What computes the positions of a plan; null if there are none.
template <typename Scalar>
std::unique_ptr<TileReadouts<Scalar>> make_readouts(const GramPlan& plan, Index most_pairs,
                                                    StopRequest stop) {
  if (plan.vectors_only) return nullptr;
  if (plan.device != nullptr) return std::make_unique<DeviceReadouts<Scalar>>(plan, stop);
  return std::make_unique<PlaneReadouts<Scalar>>(plan.program, plan.demand(Purpose::result), most_pairs,
                                                 stop);
}

}  // namespace

template <typename Scalar>
std::unique_ptr<TileBackend<Scalar>> make_tile_backend(const GramPlan& plan, const TileSize& most,
                                                       StopRequest stop) {
  if (plan.device != nullptr && plan.vectors_only) return std::make_unique<DeviceVectors<Scalar>>(plan, stop);
  return std::make_unique<PairRowBackend<Scalar>>(plan, most, make_readouts<Scalar>(plan, most.pairs(), stop),
                                                  stop);
}

template std::unique_ptr<TileBackend<float>> make_tile_backend(const GramPlan&, const TileSize&, StopRequest);
template std::unique_ptr<TileBackend<double>> make_tile_backend(const GramPlan&, const TileSize&,
                                                                StopRequest);

}  // namespace widelimit
