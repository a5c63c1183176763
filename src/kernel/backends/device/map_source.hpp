#pragma once

#include <array>
#include <optional>
#include <string>

#include "kernel/backends/device/chain_source.hpp"
#include "kernel/backends/device/kept_planes.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit {

/// K' = M K M'^T, where M is a Kronecker product of one matrix for each axis: poolings, and maps of positions.
struct PositionMap {
  struct Side {
    std::array<SparseAxis, 3> axes;
    Index3 input, output;  ///< Sizes.
    /// For poolings, whose matrices need no tables: where the window of the first output begins, to the left.
    struct Windows {
      Index3 size, front;
    };
    std::optional<Windows> windows = {};
  };
  Side left, right;
  /// How many positions windows move on from one output to the next, or about so: neighbouring outputs then read
  /// neighbouring entries.
  Index3 stride{1, 1, 1};
};

/// The matrices of a stage that maps positions; null for other operations.
const PositionMatrices* position_matrices(const Operation& operation);

/// The map of a pooling or a stage that maps positions, for a pair of these sizes and input shapes. Throws DeviceError.
PositionMap position_map(const Program& program, NodeId node, const PairGeometry& geometry);

/// Two OpenCL kernels, one for each side, each with the arguments of ChainSource's: the first one goes from what is
/// kept before the map to something between, the second one from there to what is kept after it.
struct MapSources {
  std::string left, right;
  /// Entries between, and after the map: work-items.
  Index between, after;
};

/// What is kept between both, to be placed by the caller.
KeptPlanes planes_between(const PositionMap& map, const KeptPlanes& after);

MapSources map_sources(const PositionMap& map, const KeptPlanes& before, const KeptPlanes& between,
                       const KeptPlanes& after, Index kernel_size, const ChainSourceOptions& options);

}  // namespace widelimit
