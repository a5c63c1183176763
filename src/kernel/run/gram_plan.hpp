#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "kernel/plan/program.hpp"
#include "kernel/planes/input_state.hpp"
#include "kernel/planes/pair_layout.hpp"
#include "kernel/run/lowered_network.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// Everything about a Gram matrix that does not depend on the values of the inputs.
struct GramPlan {
  Program program;
  Kernel kernel;
  bool demand_everything;
  Index channels;
  std::map<Shape, StateLayout> state_layouts;  ///< For every shape that occurs among the inputs.
  std::map<Shape, Index> tile_sides;           ///< Inputs of a shape on one side of a tile of pairs.
  Index largest_tile_side;

  /// True if no covariance has positions: the input products of a whole tile are then one matrix product.
  bool vectors_only;

  /// True if float results are rounded from double: over a hundred layers of vectors, the roundings of float
  /// add up to more than its digits are worth; and graphs have many nodes that are perfectly correlated.
  bool in_double;

  InputMasks masks;

  /// True if a stage makes its state of an input's NTK with itself too (FunctionalStage::reads_own_ntk()).
  bool states_read_ntk = false;

  /// What is wanted of pairs, or of inputs with themselves, which need no NTK but where states read it.
  [[nodiscard]] PairDemand demand(Purpose purpose) const {
    const Kernel of_states = states_read_ntk ? Kernel::with_ntk : Kernel::nngp_only;
    return {purpose, purpose == Purpose::state ? of_states : kernel, demand_everything};
  }
  /// After the positions the states of all inputs are alike.
  [[nodiscard]] const StateLayout& any_layout() const { return state_layouts.begin()->second; }
};

/// Side of the tiles of vectors where there are many; of fewer it is a divisor.
inline constexpr Index largest_vector_tile_side = 512;

/// What the plan wants to know of the inputs besides their shapes.
struct GramSize {
  Index channels;
  Index inputs;        ///< Of the larger batch.
  Index fewer_inputs;  ///< Of the smaller one.
  Index pairs;
  InputMasks masks = InputMasks::absent;

  friend bool operator==(const GramSize&, const GramSize&) = default;
};

/// Throws NetworkError, naming the input, if the network cannot be applied to one of the shapes.
GramPlan make_plan(const Network& network, const NamedShapes& shapes, const GramSize& size,
                   std::size_t scalar_bytes, const GramOptions& options, const Replicate& replicate = {});

/// Inputs whose products are one matrix product a pair, for these shapes after all nodes: with many channels most
/// offsets of which are demanded, and those that attention wants whole.
std::set<NodeId> matrix_inputs(const Graph& graph, const std::vector<Shape>& shapes, Index channels);

/// How often a network with sampled stages is run; 1 without.
std::int64_t sampled_replicates(const Graph& graph);

}  // namespace widelimit
