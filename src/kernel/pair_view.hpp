#pragma once

#include "kernel/planes/input_state.hpp"
#include "kernel/planes/plane.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// What a pair stage sees of two inputs: their covariances in front of it, whose ntk is null where none is
/// computed, and what is kept of either. Whether they are one input, what is wanted and the stop are left to
/// the caller.
template <typename Scalar>
PairView<Scalar> pair_view(NodeId stage, const InputState<Scalar>& left, const InputState<Scalar>& right,
                           const Shape& left_shape, const Shape& right_shape, const Plane<Scalar>& kernels) {
  const Index rows = position_count(left_shape), columns = position_count(right_shape);
  const bool with_ntk = kernels.ntk != nullptr;
  return {.nngp = {kernels.nngp, rows, columns},
          .ntk = {kernels.ntk, with_ntk ? rows : 0, with_ntk ? columns : 0},
          .left_variance = left.array(stage, 0),
          .right_variance = right.array(stage, 0),
          .left_state = left.extra(stage),
          .right_state = right.extra(stage),
          .left_shape = left_shape,
          .right_shape = right_shape,
          .same_input = false,
          .wanted = Entries::all,
          .left_graph = left.graph(),
          .right_graph = right.graph()};
}

/// Where a pair stage writes `rows` x `columns` entries, likewise.
template <typename Scalar>
PairResult<Scalar> pair_result(const Plane<Scalar>& kernels, Index rows, Index columns, Scalar* scratch) {
  const bool with_ntk = kernels.ntk != nullptr;
  return {.nngp = {kernels.nngp, rows, columns},
          .ntk = {kernels.ntk, with_ntk ? rows : 0, with_ntk ? columns : 0},
          .scratch = scratch};
}

}  // namespace widelimit
