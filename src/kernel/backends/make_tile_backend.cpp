#include "kernel/backends/make_tile_backend.hpp"

#include <utility>

#include "kernel/backends/cpu/pair_row_backend.hpp"
#include "kernel/backends/cpu/plane_readouts.hpp"
#include "kernel/backends/device/device_readouts.hpp"
#include "kernel/backends/device/device_vectors.hpp"
#include "kernel/run/gram_plan.hpp"

namespace widelimit {
namespace {

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
