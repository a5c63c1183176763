#include "kernel/backends/cpu/backward/pair_rows/pair_row_backward_pass.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"
#include "kernel/backends/cpu/planes/written_entries.hpp"
#include "kernel/range/variance_checks.hpp"

namespace widelimit {
namespace {

/// Calls body(first, count, is the input with itself) for the pairs before, at and after the input itself. Stages
/// treat an input with itself apart, because p = q = c has one number to differentiate by
/// (docs/theory/derivatives.md, section 1).
template <typename Body>
void for_each_part(Index columns, Index same, const Body& body) {
  if (same < 0) return body(Index{0}, columns, false);
  if (same > 0) body(Index{0}, same, false);
  body(same, Index{1}, true);
  if (same + 1 < columns) body(same + 1, columns - same - 1, false);
}

/// Arrays that begin at entry `first` of the given ones.
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

/// After the positions. Views of pairs refer to it.
const Shape no_positions;

}  // namespace

template <typename Scalar>
PairRowBackwardPass<Scalar>::PairRowBackwardPass(const Program& program, bool with_ntk,
                                                 const std::vector<bool>* steep)
    : program_{program},
      with_ntk_{with_ntk},
      ties_{steep},
      tape_(program.pair_rows.instructions.size()),
      arrays_(tape_.size()) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    if (program.pair_rows.instructions[i].loads || multiplies_features(operation(i)))
      sources_.push_back(i);
    else if (read_back(operation(i), false).values)
      // Dense layers and sums pass adjoints back without values. If there are no other nodes, the values of readouts
      // need not be read.
      is_linear_ = false;
  }
}

template <typename Scalar>
std::vector<TapeEntry<Scalar>*> PairRowBackwardPass<Scalar>::inputs(std::size_t i) {
  std::vector<TapeEntry<Scalar>*> entries;
  for (const std::size_t input : program_.pair_rows.instructions[i].inputs) entries.push_back(&tape_[input]);
  return entries;
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::begin_tile(std::span<InputRecord<Scalar>* const> right) {
  right_.assign(right.begin(), right.end());
  const std::size_t columns = right.size();
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    tape_[i].resize(columns, with_ntk_);
    if (!needs_variances(operation(i))) continue;
    const NodeId id = node_of(i);
    const Index auxiliaries = right.front()->layout->auxiliaries[id];
    StageArrays& arrays = arrays_[i];
    arrays.values.resize(static_cast<std::size_t>(auxiliaries + 1) * columns);
    // Array k is a row of `columns` numbers, one for each right input. Auxiliary arrays come first, and the variances
    // are last.
    for (std::size_t j = 0; j < columns; ++j) take_values(i, j, *right[j]);
    arrays.variance_adjoints.assign(columns, Scalar{0});
    arrays.state_adjoints.assign(columns * static_cast<std::size_t>(right.front()->layout->states[id]),
                                 Scalar{0});
  }
}

/// Copies what a stage reads of one right input from its record into the arrays of the row.
template <typename Scalar>
void PairRowBackwardPass<Scalar>::take_values(std::size_t i, std::size_t column, InputRecord<Scalar>& input) {
  const NodeId id = node_of(i);
  const auto auxiliaries = static_cast<std::size_t>(input.layout->auxiliaries[id]), columns = tape_[i].size();
  std::vector<Scalar>& values = arrays_[i].values;
  for (std::size_t k = 0; k < auxiliaries; ++k)
    values[k * columns + column] = input.auxiliary(id, static_cast<Index>(k))[0];
  values[auxiliaries * columns + column] = input.variances(id)[0];
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::end_tile(std::span<RecordAdjoint<Scalar>* const> right) {
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
void PairRowBackwardPass<Scalar>::forward(const Row& row) {
  row_ = row;
  interpret(program_.pair_rows, program_.graph, timer_, row_.stop, *this);
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::begin_backward() {
  for (TapeEntry<Scalar>& entry : tape_) entry.clear_adjoint();
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::backward(const Row& row) {
  row_ = row;
  ties_.found = false;
  interpret_backward(program_.pair_rows, program_.graph, row_.stop, *this);
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::evaluate(std::size_t i, const AffineNumbers& numbers) {
  dense_plane(numbers.weight_variance, numbers.bias_variance, inputs(i)[0]->value(), tape_[i].size(),
              tape_[i].value());
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::propagate(std::size_t i, const AffineNumbers& numbers) {
  TapeEntry<Scalar>&to = tape_[i], &from = *inputs(i)[0];
  if (scalars_ != nullptr) scalars_->add(node_of(i), numbers, to.value(), to.adjoint(), to.size());
  add_times(to.adjoint(), numbers.weight_variance, to.size(), from.adjoint());
  // T' = K' + w T, so that the adjoint of T' contributes to that of K as well: K-bar += w (K'-bar + T'-bar).
  if (with_ntk_)
    numerics::linear_rows<Scalar>().add(to.ntk_adjoint.data(), static_cast<Scalar>(numbers.weight_variance),
                                        from.nngp_adjoint.data(), to.size());
}

template <typename Scalar>
template <EntrywiseOperation Node>
void PairRowBackwardPass<Scalar>::evaluate(std::size_t i, const Node& node) {
  const std::vector<TapeEntry<Scalar>*> from = inputs(i);
  evaluate_entries(
      node, [&](std::size_t k) { return from[k]->value(); }, from.size(), tape_[i].size(), tape_[i].value());
}

template <typename Scalar>
template <EntrywiseOperation Node>
void PairRowBackwardPass<Scalar>::propagate(std::size_t i, const Node& node) {
  TapeEntry<Scalar>& to = tape_[i];
  const std::vector<TapeEntry<Scalar>*> from = inputs(i);
  const auto source = [&](std::size_t k) { return from[k]->value(); };
  if (scalars_ != nullptr)
    for_each_number(node, source, to.value(), [&](std::size_t number, const auto& of, double divisor) {
      scalars_->add(node_of(i), number, divisor, of, to.adjoint(), to.size());
    });
  for (std::size_t k = 0; k < from.size(); ++k)
    add_entry_adjoint(node, source, from.size(), k, to.adjoint(), to.size(), from[k]->adjoint());
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::record(std::size_t i, const RowStage& stage) {
  const NodeId id = node_of(i);
  row_.left->variances(id)[0] = inputs(i)[0]->nngp[0];
  prepare_row_stage(*row_.left, id, stage);
  take_values(i, 0, *row_.left);
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::evaluate(std::size_t i, const RowStage& stage) {
  if (row_.recording) record(i, stage);
  TapeEntry<Scalar>& to = tape_[i];
  const std::size_t auxiliaries = stage.auxiliary_count(), columns = to.size();
  // Stages work in place, and the backward pass will read the values before the stage. They stay in the input's
  // entry.
  copy_plane(inputs(i)[0]->value(), columns, to.value());
  // The left input is the same in the whole row, so its numbers are repeated for every column.
  std::vector<Scalar>& left_values = arrays_[i].left_values;
  left_values.resize((auxiliaries + 1) * columns);
  for (std::size_t k = 0; k <= auxiliaries; ++k) {
    const Scalar value = k == auxiliaries ? row_.left->variances(node_of(i))[0]
                                          : row_.left->auxiliary(node_of(i), static_cast<Index>(k))[0];
    std::fill_n(left_values.begin() + static_cast<std::ptrdiff_t>(k * columns), columns, value);
  }
  const PackedArrays<Scalar> arrays(left_values.data(), arrays_[i].values.data(), auxiliaries, columns);
  const Plane<Scalar> plane = to.value();
  for_each_part(static_cast<Index>(columns), row_.same, [&](Index first, Index count, bool itself) {
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
void PairRowBackwardPass<Scalar>::look_for_ties(std::size_t i, const numerics::AdjointRow<Scalar>& entries) {
  if (ties_.steep == nullptr || !(*ties_.steep)[node_of(i)]) return;
  const auto is_wanted = [&](std::size_t j) {
    return entries.nngp_adjoint[j] != 0 || (entries.ntk_adjoint != nullptr && entries.ntk_adjoint[j] != 0);
  };
  for (std::size_t j = 0; j < entries.size && !ties_.found; ++j)
    ties_.found = is_wanted(j) && count_near_ties(entries.nngp + j, entries.left_variance + j,
                                                  entries.right_variance + j, 1) > 0;
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::propagate(std::size_t i, const RowStage& stage) {
  TapeEntry<Scalar>&to = tape_[i], &from = *inputs(i)[0];
  const std::size_t columns = to.size();
  const PackedArrays<Scalar> arrays(arrays_[i].left_values.data(), arrays_[i].values.data(),
                                    stage.auxiliary_count(), columns);
  const Plane<Scalar> value = from.value(), adjoint = to.adjoint();
  // Stages leave the adjoints of the variances here: left ones in front, right ones behind.
  variances_.assign(2 * columns, Scalar{0});
  Scalar *of_left = variances_.data(), *of_right = variances_.data() + columns;
  for_each_part(static_cast<Index>(columns), row_.same, [&](Index first, Index count, bool itself) {
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
    if (!itself) {
      look_for_ties(i, entries);
      return stage.apply_adjoint(entries);
    }
    stage.apply_self_adjoint(entries);
    // The adjoint of K already has the total slope of an input with itself, except that stages which mix variances of
    // positions leave a part for the variances.
    of_right[first] = 0;
    if (!stage.mixes_variances()) of_left[first] = 0;
  });
  add_times(adjoint, 1, columns, from.adjoint());
  Scalar& left_variance = row_.left_adjoint->variances(node_of(i))[0];
  left_variance = std::accumulate(of_left, of_left + columns, left_variance);
  // Right inputs collect their adjoints over all rows of the tile; end_tile() hands them to the records.
  for (std::size_t j = 0; j < columns; ++j) arrays_[i].variance_adjoints[j] += of_right[j];
  // The backward pass of a recorded row comes after all pairs, which have added their part to the adjoint of the left
  // input's variance. This variance is the value before the stage, so its adjoint joins the adjoint of that value.
  if (!row_.recording) return;
  stage.prepare_adjoint(&left_variance, 1);
  from.nngp_adjoint[0] += left_variance;
}

template <typename Scalar>
PairView<Scalar> PairRowBackwardPass<Scalar>::view(std::size_t i, std::size_t column) {
  const NodeId id = node_of(i);
  const auto place = static_cast<std::ptrdiff_t>(column);
  auto view =
      pair_view<Scalar>(stage_input(id, *row_.left, no_positions),
                        stage_input(id, *right_[column], no_positions), inputs(i)[0]->value() + place);
  view.same_input = place == row_.same;
  view.stop = row_.stop;
  return view;
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::record(std::size_t i, const PairStage& stage) {
  const NodeId id = node_of(i);
  InputRecord<Scalar>& left = *row_.left;
  const Scalar variance = left.variances(id)[0] = inputs(i)[0]->nngp[0];
  check_variances(&variance, 1);
  stage.prepare(SelfView<Scalar>{{&variance, 1, 1}, no_positions, row_.stop, {}, left.graph}, left.state(id));
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::evaluate(std::size_t i, const PairStage& stage) {
  if (row_.recording) record(i, stage);
  TapeEntry<Scalar>& to = tape_[i];
  scratch_.resize(stage.scratch_size(no_positions, no_positions));
  for (std::size_t j = 0; j < to.size(); ++j) {
    auto result = pair_result<Scalar>(to.value() + static_cast<std::ptrdiff_t>(j), 1, 1, scratch_.data());
    name_layer(program_.graph.nodes[node_of(i)], [&] { apply_pair_stage(stage, view(i, j), result); });
  }
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::propagate(std::size_t i, const PairStage& stage) {
  const NodeId id = node_of(i);
  TapeEntry<Scalar>&to = tape_[i], &from = *inputs(i)[0];
  StageArrays& right = arrays_[i];
  const Index of_ntk = with_ntk_ ? 1 : 0;
  const auto states = static_cast<std::size_t>(row_.left->layout->states[id]);
  for (std::size_t j = 0; j < to.size(); ++j) {
    const auto place = static_cast<std::ptrdiff_t>(j);
    const Plane<Scalar> after = to.adjoint() + place, before = from.adjoint() + place;
    stage.apply_adjoint(view(i, j), {.nngp_after = {after.nngp, 1, 1},
                                     .ntk_after = {after.ntk, of_ntk, of_ntk},
                                     .nngp = {before.nngp, 1, 1},
                                     .ntk = {before.ntk, of_ntk, of_ntk},
                                     .left_variance = row_.left_adjoint->variances(id),
                                     .right_variance = right.variance_adjoints.data() + j,
                                     .left_state = row_.left_adjoint->state(id),
                                     .right_state = right.state_adjoints.data() + j * states});
  }
  if (row_.recording) propagate_record(i, stage);
}

template <typename Scalar>
void PairRowBackwardPass<Scalar>::propagate_record(std::size_t i, const PairStage& stage) {
  const NodeId id = node_of(i);
  InputRecord<Scalar>& left = *row_.left;
  RecordAdjoint<Scalar>& adjoint = *row_.left_adjoint;
  TapeEntry<Scalar>& from = *inputs(i)[0];
  StageArrays& right = arrays_[i];
  // The left and the right input of this row are one, so what the stage gave to its right side belongs to the same
  // adjoint. It must not be added again by end_tile().
  adjoint.variances(id)[0] += std::exchange(right.variance_adjoints[0], Scalar{0});
  for (std::size_t s = 0; s < static_cast<std::size_t>(left.layout->states[id]); ++s)
    adjoint.state(id)[s] += std::exchange(right.state_adjoints[s], Scalar{0});
  Scalar variance = left.variances(id)[0];
  stage.prepare_adjoint(SelfView<Scalar>{{&variance, 1, 1}, no_positions, row_.stop, {}, left.graph},
                        {.state = left.state(id),
                         .state_adjoint = adjoint.state(id),
                         .nngp = {from.nngp_adjoint.data(), 1, 1}});
  from.nngp_adjoint[0] += adjoint.variances(id)[0];
}

template class PairRowBackwardPass<float>;
template class PairRowBackwardPass<double>;

}  // namespace widelimit
