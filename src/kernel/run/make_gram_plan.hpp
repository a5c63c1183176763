#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "kernel/backends/gram_plan.hpp"
#include "kernel/run/lowered_network.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// Side of the tiles of vectors in large batches. The side for small batches divides it.
inline constexpr Index largest_vector_tile_side = 512;

/// What a plan depends on besides the shapes of the inputs.
struct GramSize {
  Index channels;
  Index inputs;        ///< Inputs of the larger batch.
  Index fewer_inputs;  ///< Inputs of the smaller batch.
  Index pairs;
  InputMasks masks = InputMasks::absent;

  friend bool operator==(const GramSize&, const GramSize&) = default;
};

/// Throws NetworkError if the network cannot be applied to a shape, naming the input unless no shape would do.
GramPlan make_plan(const Network& network, const NamedShapes& shapes, const GramSize& size,
                   std::size_t scalar_bytes, const GramOptions& options, const Replicate& replicate = {});

/// The memory of `wanted` that the states of a plan may take: a device may have less.
std::size_t state_memory(const GramPlan& plan, std::size_t wanted);

/// The inputs that are multiplied as matrices, one product [d, C] x [C, d'] for each pair, where `shapes` are those
/// after all nodes. They have many channels and most of their offsets are demanded, or attention reads them as a
/// whole.
std::set<NodeId> matrix_inputs(const Graph& graph, const std::vector<Shape>& shapes, Index channels);

/// How often a network with sampled stages is run; 1 without.
std::int64_t sampled_replicates(const Graph& graph);

}  // namespace widelimit
