#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "kernel/backends/reference/naive_kernel.hpp"
#include "kernel/backends/reference/naive_windows.hpp"

/// Layers of the naive kernel that map positions, as matrices over all of them.
namespace widelimit::testing {

/// Of one input: y = M x over its positions, [out, in].
struct PositionMap {
  Shape shape;  ///< After the layer.
  RealMatrix matrix;
};

/// Of a slice, index, image_resize or positions_map.
PositionMap position_map(const Shape& shape, const nlohmann::json& layer);

NaiveState map_positions(const NaiveState& state, const nlohmann::json& layer);

/// For every output position of a transposed convolution, the input position that each of its taps reads, -1: none.
Cover transposed_cover(const Shape& shape, const nlohmann::json& layer);

/// The ends of branches, one after the other along an axis.
NaiveState concatenated(const std::vector<NaiveState>& ends, std::size_t axis);

}  // namespace widelimit::testing
