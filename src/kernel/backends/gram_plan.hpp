#pragma once

#include <map>
#include <memory>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/plan/program.hpp"
#include "network/lowering.hpp"

namespace widelimit {

class DevicePlan;

/// Everything about a Gram matrix that does not depend on the values of the inputs.
struct GramPlan {
  /// How it is computed on a device; null on the CPU.
  std::shared_ptr<const DevicePlan> device = nullptr;
  Program program;
  Kernel kernel;
  bool demand_everything;
  Index channels;
  std::map<Shape, StateLayout> state_layouts;  ///< For every shape that occurs among the inputs.
  std::map<Shape, Index> tile_sides;           ///< Inputs of a shape on one side of a tile of pairs.
  Index largest_tile_side;

  /// True if no covariance has positions: the input products of a whole tile are then one matrix product.
  bool vectors_only;

  /// True if results of type float are computed in double and rounded. The roundings of float would add up to more
  /// than its digits are worth over a hundred layers of vectors. On graphs, many nodes are perfectly correlated,
  /// where a rounding error of the covariance costs half the digits (docs/theory/graphs.md, section 3).
  bool in_double;

  InputMasks masks;

  /// True if states hold no leading outputs (kernel/readouts/leading_outputs.hpp).
  bool exact_attention = false;

  /// True if the state of some stage is made of the input's NTK with itself as well
  /// (FunctionalStage::reads_own_ntk()).
  bool states_read_ntk = false;

  /// What is computed of pairs, or of inputs with themselves. These need no NTK unless states read it.
  [[nodiscard]] PairDemand demand(Purpose purpose) const {
    const Kernel of_states = states_read_ntk ? Kernel::with_ntk : Kernel::nngp_only;
    return {purpose, purpose == Purpose::state ? of_states : kernel, demand_everything};
  }
  /// A layout for everything that comes after the positions, where the states of all inputs are alike.
  [[nodiscard]] const StateLayout& any_layout() const { return state_layouts.begin()->second; }
};

}  // namespace widelimit
