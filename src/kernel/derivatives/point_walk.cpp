#include "kernel/derivatives/point_walk.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/derivatives/entrywise.hpp"
#include "kernel/interpreter.hpp"
#include "kernel/variance_checks.hpp"

namespace widelimit {
namespace {

/// Calls body(first, count, is the input with itself) for the parts of a row.
template <typename Body>
void for_each_part(Index columns, Index same, const Body& body) {
  if (same < 0) return body(Index{0}, columns, false);
  if (same > 0) body(Index{0}, same, false);
  body(same, Index{1}, true);
  if (same + 1 < columns) body(same + 1, columns - same - 1, false);
}

/// The same arrays further on.
template <typename Scalar>
std::vector<const Scalar*> shifted(const std::vector<const Scalar*>& arrays, Index first) {
  std::vector<const Scalar*> result;
  result.reserve(arrays.size());
  for (const Scalar* array : arrays) result.push_back(array + first);
  return result;
}

template <typename Scalar>
Scalar* shifted(Scalar* numbers, Index first) {
  return numbers == nullptr ? nullptr : numbers + first;
}

}  // namespace

template <typename Scalar>
PointWalk<Scalar>::PointWalk(const Program& program, bool with_ntk)
    : program_{program},
      with_ntk_{with_ntk},
      tape_(program.points.instructions.size()),
      arrays_(tape_.size()) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    const bool is_input = std::holds_alternative<InputNode>(operation(i));
    if (program.points.instructions[i].loads || is_input) {
      sources_.push_back(i);
    } else if (!std::holds_alternative<AffineNode>(operation(i)) &&
               !std::holds_alternative<SumNode>(operation(i))) {
      is_linear_ = false;
    }
  }
}

template <typename Scalar>
std::vector<TapeEntry<Scalar>*> PointWalk<Scalar>::inputs(std::size_t i) {
  std::vector<TapeEntry<Scalar>*> entries;
  for (const std::size_t input : program_.points.instructions[i].inputs) entries.push_back(&tape_[input]);
  return entries;
}

template <typename Scalar>
void PointWalk<Scalar>::begin_tile(std::span<InputRecord<Scalar>* const> right) {
  right_ = right;
  const std::size_t columns = right.size();
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    tape_[i].resize(columns, with_ntk_);
    if (!needs_variances(operation(i))) continue;
    const NodeId id = node_of(i);
    const Index auxiliaries = right.front()->layout->auxiliaries[id];
    StageArrays& arrays = arrays_[i];
    arrays.values.resize(static_cast<std::size_t>(auxiliaries + 1) * columns);
    for (std::size_t j = 0; j < columns; ++j) take_values(i, j, *right[j]);
    arrays.variance_adjoints.assign(columns, Scalar{0});
    arrays.state_adjoints.assign(columns * static_cast<std::size_t>(right.front()->layout->states[id]),
                                 Scalar{0});
  }
}

/// What a stage reads of an input.
template <typename Scalar>
void PointWalk<Scalar>::take_values(std::size_t i, std::size_t column, InputRecord<Scalar>& input) {
  const NodeId id = node_of(i);
  const auto auxiliaries = static_cast<std::size_t>(input.layout->auxiliaries[id]), columns = tape_[i].size();
  std::vector<Scalar>& values = arrays_[i].values;
  for (std::size_t k = 0; k < auxiliaries; ++k)
    values[k * columns + column] = input.auxiliary(id, static_cast<Index>(k))[0];
  values[auxiliaries * columns + column] = input.variances(id)[0];
}

template <typename Scalar>
void PointWalk<Scalar>::end_tile(std::span<RecordAdjoint<Scalar>* const> right) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    if (!needs_variances(operation(i))) continue;
    const NodeId id = node_of(i);
    const auto states = static_cast<std::size_t>(right.front()->layout->states[id]);
    for (std::size_t j = 0; j < right.size(); ++j) {
      right[j]->variances(id)[0] += arrays_[i].variance_adjoints[j];
      for (std::size_t s = 0; s < states; ++s)
        right[j]->state(id)[s] += arrays_[i].state_adjoints[j * states + s];
    }
  }
}

template <typename Scalar>
void PointWalk<Scalar>::forth(InputRecord<Scalar>& left, Index same, bool recording,
                              const StopRequest& stop) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    TapeEntry<Scalar>& to = tape_[i];
    if (program_.points.instructions[i].loads) continue;
    if (const auto* affine = std::get_if<AffineNode>(&operation(i))) {
      dense_plane(affine->weight_variance, affine->bias_variance, inputs(i)[0]->value(), to.size(),
                  to.value());
    } else if (const auto* row = std::get_if<RowNode>(&operation(i))) {
      if (recording) record(i, left);
      row_forth(i, left, same, *row->stage);
    } else if (const auto* pair = std::get_if<PairNode>(&operation(i))) {
      pair_forth(i, left, same, recording, *pair->stage, stop);
    } else if (const auto* sum = std::get_if<SumNode>(&operation(i))) {
      sum_planes([&](std::size_t k) { return inputs(i)[k]->value(); }, sum->factors, to.size(), to.value());
    } else if (const auto* product = std::get_if<ProductNode>(&operation(i))) {
      multiply_planes([&](std::size_t k) { return inputs(i)[k]->value(); }, inputs(i).size(), product->factor,
                      to.size(), to.value());
    } else if (!std::holds_alternative<InputNode>(operation(i))) {
      throw_no_instruction(program_.points.instructions[i]);
    }
  }
}

template <typename Scalar>
void PointWalk<Scalar>::begin_back() {
  for (TapeEntry<Scalar>& entry : tape_) entry.clear_adjoint();
}

template <typename Scalar>
void PointWalk<Scalar>::back(InputRecord<Scalar>& left, RecordAdjoint<Scalar>& left_adjoint, Index same,
                             bool recording, const StopRequest& stop) {
  for (std::size_t i = tape_.size(); i-- > 0;) {
    TapeEntry<Scalar>& to = tape_[i];
    if (program_.points.instructions[i].loads) continue;
    if (const auto* affine = std::get_if<AffineNode>(&operation(i))) {
      TapeEntry<Scalar>& from = *inputs(i)[0];
      if (scalars_ != nullptr) scalars_->add(node_of(i), *affine, to.value(), to.adjoint(), to.size());
      add_times(to.adjoint(), affine->weight_variance, to.size(), from.adjoint());
      if (with_ntk_)
        numerics::linear_rows<Scalar>().add(to.ntk_adjoint.data(),
                                            static_cast<Scalar>(affine->weight_variance),
                                            from.nngp_adjoint.data(), to.size());
    } else if (const auto* row = std::get_if<RowNode>(&operation(i))) {
      row_back(i, left_adjoint, same, recording, *row->stage);
    } else if (const auto* pair = std::get_if<PairNode>(&operation(i))) {
      pair_back(i, left, left_adjoint, same, recording, *pair->stage, stop);
    } else if (const auto* sum = std::get_if<SumNode>(&operation(i))) {
      for (std::size_t k = 0; k < sum->factors.size(); ++k) {
        TapeEntry<Scalar>& from = *inputs(i)[k];
        if (scalars_ != nullptr) scalars_->add_summand(node_of(i), k, from.value(), to.adjoint(), to.size());
        add_times(to.adjoint(), sum->factors[k], to.size(), from.adjoint());
      }
    } else if (const auto* product = std::get_if<ProductNode>(&operation(i))) {
      const std::vector<TapeEntry<Scalar>*> from = inputs(i);
      if (scalars_ != nullptr) scalars_->add(node_of(i), *product, to.value(), to.adjoint(), to.size());
      for (std::size_t k = 0; k < from.size(); ++k)
        factor_back(
            *product, [&](std::size_t other) { return from[other]->value(); }, from.size(), k, to.adjoint(),
            to.size(), from[k]->adjoint());
    }
  }
}

template <typename Scalar>
void PointWalk<Scalar>::record(std::size_t i, InputRecord<Scalar>& left) {
  const NodeId id = node_of(i);
  left.variances(id)[0] = inputs(i)[0]->nngp[0];
  prepare_row_stage(left, id, program_.graph.nodes[id]);
  take_values(i, 0, left);
}

template <typename Scalar>
void PointWalk<Scalar>::row_forth(std::size_t i, InputRecord<Scalar>& left, Index same,
                                  const RowStage& stage) {
  TapeEntry<Scalar>& to = tape_[i];
  const std::size_t auxiliaries = stage.auxiliary_count(), columns = to.size();
  copy_plane(inputs(i)[0]->value(), columns, to.value());
  std::vector<Scalar>& left_values = arrays_[i].left_values;
  left_values.resize((auxiliaries + 1) * columns);
  for (std::size_t k = 0; k <= auxiliaries; ++k) {
    const Scalar value = k == auxiliaries ? left.variances(node_of(i))[0]
                                          : left.auxiliary(node_of(i), static_cast<Index>(k))[0];
    std::fill_n(left_values.begin() + static_cast<std::ptrdiff_t>(k * columns), columns, value);
  }
  const PackedArrays<Scalar> arrays(left_values.data(), arrays_[i].values.data(), auxiliaries, columns);
  const Plane<Scalar> plane = to.value();
  for_each_part(static_cast<Index>(columns), same, [&](Index first, Index count, bool itself) {
    const auto left_part = shifted(arrays.left, first), right_part = shifted(arrays.right, first);
    const numerics::DualRow<Scalar> entries{plane.nngp + first, shifted(plane.ntk, first), left_part.data(),
                                            right_part.data(), static_cast<std::size_t>(count)};
    if (itself)
      stage.apply_self(entries);
    else
      stage.apply(entries);
  });
}

template <typename Scalar>
void PointWalk<Scalar>::row_back(std::size_t i, RecordAdjoint<Scalar>& left_adjoint, Index same,
                                 bool recording, const RowStage& stage) {
  TapeEntry<Scalar>&to = tape_[i], &from = *inputs(i)[0];
  const std::size_t columns = to.size();
  const PackedArrays<Scalar> arrays(arrays_[i].left_values.data(), arrays_[i].values.data(),
                                    stage.auxiliary_count(), columns);
  const Plane<Scalar> value = from.value(), adjoint = to.adjoint();
  variances_.assign(2 * columns, Scalar{0});
  Scalar *of_left = variances_.data(), *of_right = variances_.data() + columns;
  for_each_part(static_cast<Index>(columns), same, [&](Index first, Index count, bool itself) {
    const auto left_part = shifted(arrays.left, first), right_part = shifted(arrays.right, first);
    const numerics::AdjointRow<Scalar> entries{value.nngp + first,
                                               shifted(value.ntk, first),
                                               arrays.left_variance + first,
                                               arrays.right_variance + first,
                                               left_part.data(),
                                               right_part.data(),
                                               adjoint.nngp + first,
                                               shifted(adjoint.ntk, first),
                                               of_left + first,
                                               of_right + first,
                                               static_cast<std::size_t>(count)};
    name_layer(program_.graph.nodes[node_of(i)],
               [&] { itself ? stage.apply_self_adjoint(entries) : stage.apply_adjoint(entries); });
    if (!itself) return;
    of_right[first] = 0;
    if (!stage.mixes_variances()) of_left[first] = 0;
  });
  add_times(adjoint, 1, columns, from.adjoint());
  Scalar& left_variance = left_adjoint.variances(node_of(i))[0];
  left_variance = std::accumulate(of_left, of_left + columns, left_variance);
  for (std::size_t j = 0; j < columns; ++j) arrays_[i].variance_adjoints[j] += of_right[j];
  // What all pairs made of the variance.
  if (!recording) return;
  stage.prepare_adjoint(&left_variance, 1);
  from.nngp_adjoint[0] += left_variance;
}

template <typename Scalar>
PairView<Scalar> PointWalk<Scalar>::view(std::size_t i, InputRecord<Scalar>& left, std::size_t column,
                                         bool same, const StopRequest& stop) {
  const NodeId id = node_of(i);
  auto view =
      pair_view<Scalar>(stage_input(id, left, no_positions_), stage_input(id, *right_[column], no_positions_),
                        inputs(i)[0]->value() + static_cast<std::ptrdiff_t>(column));
  view.same_input = same;
  view.stop = stop;
  return view;
}

template <typename Scalar>
void PointWalk<Scalar>::pair_forth(std::size_t i, InputRecord<Scalar>& left, Index same, bool recording,
                                   const PairStage& stage, const StopRequest& stop) {
  TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = node_of(i);
  if (recording) {
    const Scalar variance = left.variances(id)[0] = inputs(i)[0]->nngp[0];
    name_layer(program_.graph.nodes[id], [&] {
      check_variances(&variance, 1);
      stage.prepare(SelfView<Scalar>{{&variance, 1, 1}, no_positions_, stop, {}, left.graph}, left.state(id));
    });
  }
  scratch_.resize(stage.scratch_size(no_positions_, no_positions_));
  for (std::size_t j = 0; j < to.size(); ++j) {
    const auto place = static_cast<std::ptrdiff_t>(j);
    auto result = pair_result<Scalar>(to.value() + place, 1, 1, scratch_.data());
    stage.apply(view(i, left, j, place == same, stop), result);
  }
}

template <typename Scalar>
void PointWalk<Scalar>::pair_back(std::size_t i, InputRecord<Scalar>& left,
                                  RecordAdjoint<Scalar>& left_adjoint, Index same, bool recording,
                                  const PairStage& stage, const StopRequest& stop) {
  const NodeId id = node_of(i);
  TapeEntry<Scalar>&to = tape_[i], &from = *inputs(i)[0];
  StageArrays& right = arrays_[i];
  const Index of_ntk = with_ntk_ ? 1 : 0;
  const auto states = static_cast<std::size_t>(left.layout->states[id]);
  for (std::size_t j = 0; j < to.size(); ++j) {
    const auto place = static_cast<std::ptrdiff_t>(j);
    const Plane<Scalar> behind = to.adjoint() + place, in_front = from.adjoint() + place;
    stage.apply_adjoint(view(i, left, j, place == same, stop),
                        {.nngp_behind = {behind.nngp, 1, 1},
                         .ntk_behind = {behind.ntk, of_ntk, of_ntk},
                         .nngp = {in_front.nngp, 1, 1},
                         .ntk = {in_front.ntk, of_ntk, of_ntk},
                         .left_variance = left_adjoint.variances(id),
                         .right_variance = right.variance_adjoints.data() + j,
                         .left_state = left_adjoint.state(id),
                         .right_state = right.state_adjoints.data() + j * states});
  }
  if (!recording) return;
  // The row is the input with itself: its right side is the left one.
  left_adjoint.variances(id)[0] += std::exchange(right.variance_adjoints[0], Scalar{0});
  for (std::size_t s = 0; s < states; ++s)
    left_adjoint.state(id)[s] += std::exchange(right.state_adjoints[s], Scalar{0});
  Scalar variance = left.variances(id)[0];
  stage.prepare_adjoint(SelfView<Scalar>{{&variance, 1, 1}, no_positions_, stop, {}, left.graph},
                        {.state = left.state(id),
                         .state_adjoint = left_adjoint.state(id),
                         .nngp = {from.nngp_adjoint.data(), 1, 1}});
  from.nngp_adjoint[0] += left_adjoint.variances(id)[0];
}

template class PointWalk<float>;
template class PointWalk<double>;

}  // namespace widelimit
