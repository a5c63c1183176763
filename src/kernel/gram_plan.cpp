#include "kernel/gram_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/plane_executor.hpp"
#include "network/lowering.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Larger tiles share more packing of auxiliary arrays; their workspace should stay in the caches.
constexpr Index largest_tile_side = 8;
constexpr std::size_t workspace_bytes_wanted = std::size_t{12} << 20;

/// Tiles of vectors are the blocks of a matrix product, so their grid is fixed: results must not depend on
/// it.
constexpr Index vector_tile_side = 256;

Index choose_tile_side(const GramPlan& plan, std::size_t scalar_bytes, const GramOptions& options) {
  if (options.tile_size < 0)
    throw ArgumentError(fmt::format("gram: tile_size must not be negative, got {}", options.tile_size));
  if (plan.vectors_only) return vector_tile_side;
  if (options.tile_size > 0) return options.tile_size;
  Index side = largest_tile_side;
  const auto bytes = [&] {
    return scalar_bytes *
           static_cast<std::size_t>(workspace_size(plan.program, plan.result_geometry, plan.state_layout,
                                                   plan.kernel, side, side * side)
                                        .total());
  };
  while (side > 1 && bytes() > workspace_bytes_wanted) side /= 2;
  return side;
}

}  // namespace

GramPlan make_plan(const Network& network, const Shape& input_shape, Index channels, std::size_t scalar_bytes,
                   const GramOptions& options, const Replicate& replicate) {
  Graph graph = Lowering::lower(network, input_shape, replicate);
  const std::vector<Shape> shapes = node_shapes(graph, input_shape);
  GramPlan plan{.program = make_program(std::move(graph), shapes),
                .kernel = options.kernels == Kernels::nngp ? Kernel::nngp_only : Kernel::with_ntk,
                .input_shape = input_shape,
                .channels = channels,
                .result_geometry = {},
                .state_geometry = {},
                .state_layout = {},
                .tile_side = 1,
                .vectors_only = std::none_of(shapes.begin(), shapes.end(),
                                             [](const Shape& shape) { return !shape.empty(); })};
  const bool everything = options.demand == GramOptions::Demand::everything;
  plan.result_geometry =
      make_geometry(plan.program, input_shape, input_shape, Purpose::result, plan.kernel, everything);
  plan.state_geometry =
      make_geometry(plan.program, input_shape, input_shape, Purpose::state, Kernel::nngp_only, everything);
  plan.state_layout = make_state_layout(plan.program, shapes, input_shape, channels);
  plan.tile_side = choose_tile_side(plan, scalar_bytes, options);
  return plan;
}

}  // namespace widelimit
