#pragma once

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// What a pair stage sees of one of two inputs.
template <typename Scalar>
struct StageInput {
  const Scalar* variances;
  const Scalar* state;
  const Shape& shape;  ///< The shape of the input before the stage.
  const InputGraph* graph;
};

template <typename Scalar>
StageInput<Scalar> stage_input(NodeId stage, const InputState<Scalar>& input, const Shape& shape) {
  return {input.array(stage, 0), input.extra(stage), shape, input.graph()};
}

/// What a pair stage sees of a pair: the covariances before it, whose ntk is null if none is computed, and what is
/// kept of either input. The caller sets whether both are one input, which entries are wanted, and the stop.
template <typename Scalar>
PairView<Scalar> pair_view(const StageInput<Scalar>& left, const StageInput<Scalar>& right,
                           const Plane<Scalar>& kernels) {
  const Index rows = position_count(left.shape), columns = position_count(right.shape);
  const bool with_ntk = kernels.ntk != nullptr;
  return {.nngp = {kernels.nngp, rows, columns},
          .ntk = {kernels.ntk, with_ntk ? rows : 0, with_ntk ? columns : 0},
          .left_variance = left.variances,
          .right_variance = right.variances,
          .left_state = left.state,
          .right_state = right.state,
          .left_shape = left.shape,
          .right_shape = right.shape,
          .same_input = false,
          .wanted = Entries::all,
          .left_graph = left.graph,
          .right_graph = right.graph};
}

/// Where a pair stage writes `rows` x `columns` entries. The ntk is null if none is computed.
template <typename Scalar>
PairResult<Scalar> pair_result(const Plane<Scalar>& kernels, Index rows, Index columns, Scalar* scratch) {
  const bool with_ntk = kernels.ntk != nullptr;
  return {.nngp = {kernels.nngp, rows, columns},
          .ntk = {kernels.ntk, with_ntk ? rows : 0, with_ntk ? columns : 0},
          .scratch = scratch};
}

}  // namespace widelimit
