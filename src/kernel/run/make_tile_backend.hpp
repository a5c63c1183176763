#pragma once

#include <memory>

#include "kernel/backends/cpu/planes/tile.hpp"
#include "kernel/backends/tile_backend.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

struct GramPlan;

/// The backend of a plan, which must outlive it. Tiles have at most `most` inputs on a side.
template <typename Scalar>
std::unique_ptr<TileBackend<Scalar>> make_tile_backend(const GramPlan& plan, const TileSize& most,
                                                       StopRequest stop);

}  // namespace widelimit
