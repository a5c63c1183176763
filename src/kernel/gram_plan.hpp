#pragma once

#include "kernel/input_state.hpp"
#include "kernel/pair_geometry.hpp"
#include "kernel/program.hpp"
#include "network/lowering.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// Everything about a Gram matrix that does not depend on the values of the inputs.
struct GramPlan {
  Program program;
  Kernel kernel;
  Shape input_shape;
  Index channels;
  PairGeometry result_geometry;
  PairGeometry state_geometry;
  StateLayout state_layout;
  Index tile_side;  ///< Inputs a side of a tile of pairs.

  /// True if the network never has positions: the input products of a whole tile are then one matrix product.
  bool vectors_only;
};

GramPlan make_plan(const Network& network, const Shape& input_shape, Index channels, std::size_t scalar_bytes,
                   const GramOptions& options, const Replicate& replicate = {});

}  // namespace widelimit
