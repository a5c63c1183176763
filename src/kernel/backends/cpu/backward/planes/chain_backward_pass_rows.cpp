// Row stages of a chain.
#include <algorithm>

#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"
#include "kernel/backends/cpu/backward/planes/chain_backward_pass.hpp"
#include "kernel/backends/cpu/planes/plane_windows.hpp"

namespace widelimit {

/// Records the variances before a row stage, and its auxiliary arrays. They come from the plane of offset 0 of an
/// input with itself, which has all positions.
template <typename Scalar>
void ChainBackwardPass<Scalar>::record(std::size_t i, const RowStage& stage) {
  const NodeId id = of_.id(i);
  InputRecord<Scalar>& record = *left().record;
  for_each_row_of(tape_[i].plane, of_.left_sizes(i), of_.right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    std::copy_n(input(i, 0).value.nngp + entry, count, record.variances(id) + a);
                  });
  prepare_row_stage(record, id, stage);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::evaluate(std::size_t i, const RowStage& stage) {
  const bool recording = block_->recording;
  if (recording && is_diagonal(i)) record(i, stage);
  if (recording && of_.geometry.demanded[of_.id(i)].empty()) return;
  const Planes &to = tape_[i], &from = input(i, 0);
  // Stages that do not promise to clear gaps may not be able to take the numbers that guards contain.
  if (!stage.clears_gaps()) clear_guards(from.plane.layout, stack_->count, from.value);
  copy_plane(from.value, size(to), to.value);
  const numerics::DualRow<Scalar> entries{to.value.nngp, to.value.ntk, left_planes_.arrays(i, stack_->left),
                                          right_planes_.arrays(i, right_place()), size(to)};
  if (is_diagonal(i))
    stage.apply_self(entries);
  else
    stage.apply(entries);
}

/// Adds adjoints of variances directly to the records. Those of offset 0 are read by propagate() before end_plane()
/// would add them.
template <typename Scalar>
void ChainBackwardPass<Scalar>::add_variances(std::size_t i, const Scalar* adjoints) {
  const PlacedPlane& plane = tape_[i].plane;
  for (Index n = 0; n < stack_->count; ++n) {
    Scalar* variances = left(n).adjoint->variances(of_.id(i));
    const Scalar* of_pair = adjoints + n * plane.layout.length;
    for_each_row_of(plane, of_.left_sizes(i), of_.right_sizes(i),
                    [&](Index entry, Index a, Index /*b*/, Index count) {
                      for (Index z = 0; z < count; ++z) variances[a + z] += of_pair[entry + z];
                    });
  }
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::count_entries(std::size_t i, const numerics::AdjointRow<Scalar>& entries) {
  if (of_.steep == nullptr || !(*of_.steep)[of_.id(i)]) return;
  const std::size_t length = entries.size / static_cast<std::size_t>(stack_->count);
  for (Index n = 0; n < stack_->count; ++n) {
    const std::size_t first = static_cast<std::size_t>(n) * length;
    SteepEntries& of_pair = entries_[static_cast<std::size_t>(stack_->first_pair + n)];
    of_pair.all += length;
    of_pair.near_ties += count_near_ties(entries.nngp + first, entries.left_variance + first,
                                         entries.right_variance + first, length);
  }
}

template <typename Scalar>
bool ChainBackwardPass<Scalar>::is_near_ties() const {
  constexpr std::size_t most = 1024;
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const SteepEntries& of_pair) { return of_pair.near_ties * most > of_pair.all; });
}

/// The backward pass through the stage alone. The adjoints after it become those before it, in place, and both
/// inputs' variances receive theirs.
template <typename Scalar>
void ChainBackwardPass<Scalar>::propagate_stage(std::size_t i, const RowStage& stage) {
  const Planes &to = tape_[i], &from = input(i, 0);
  const std::size_t entries_count = size(to), auxiliaries = stage.auxiliary_count();
  const Scalar* const* of_left_input = left_planes_.arrays(i, stack_->left);
  const Scalar* const* of_right_input = right_planes_.arrays(i, right_place());
  Scalar *of_left = tape_.scratch(3).nngp, *of_right = tape_.scratch(2).nngp;
  const numerics::AdjointRow<Scalar> entries{from.value.nngp,
                                             from.value.ntk,
                                             of_left_input[auxiliaries],
                                             of_right_input[auxiliaries],
                                             of_left_input,
                                             of_right_input,
                                             to.adjoint.nngp,
                                             to.adjoint.ntk,
                                             of_left,
                                             of_right,
                                             entries_count};
  // For an input with itself p = q = c, and the stage writes the total slope to the adjoint of c. Only stages that
  // mix the variances of positions leave a part for the variances.
  if (is_diagonal(i)) {
    stage.apply_self_adjoint(entries);
    if (stage.mixes_variances()) add_variances(i, of_left);
    return;
  }
  count_entries(i, entries);
  stage.apply_adjoint(entries);
  if (block_->left_wanted) left_planes_.add(i, 0, stack_->left, stack_->count, of_left);
  if (block_->right_wanted) right_planes_.add(i, 0, right_place(), stack_->count, of_right);
}

/// Besides the stage's own adjoint, offset 0 of a recorded input receives the adjoints of its variances, to which all
/// pairs and all other offsets have contributed.
template <typename Scalar>
void ChainBackwardPass<Scalar>::propagate(std::size_t i, const RowStage& stage) {
  Planes &to = tape_[i], &from = input(i, 0);
  const bool recording = block_->recording;
  if (!recording || !of_.geometry.demanded[of_.id(i)].empty()) propagate_stage(i, stage);
  // The tape gave both adjoints one slot if nothing else reads the input (PlaneTape::adjoint_slots()).
  if (from.adjoint.nngp == to.adjoint.nngp)
    from.has_adjoint = true;
  else
    give(from, [&](const Plane<Scalar>& target) { copy_plane(to.adjoint, size(to), target); });
  if (!recording || !is_diagonal(i)) return;
  Scalar* variances = left().adjoint->variances(of_.id(i));
  stage.prepare_adjoint(variances, static_cast<std::size_t>(left().record->layout->positions[of_.id(i)]));
  for_each_row_of(to.plane, of_.left_sizes(i), of_.right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    Scalar* row_adjoint = from.adjoint.nngp + entry;
                    for (Index z = 0; z < count; ++z) row_adjoint[z] += variances[a + z];
                  });
}

template void ChainBackwardPass<float>::evaluate(std::size_t, const RowStage&);
template void ChainBackwardPass<double>::evaluate(std::size_t, const RowStage&);
template bool ChainBackwardPass<float>::is_near_ties() const;
template bool ChainBackwardPass<double>::is_near_ties() const;
template void ChainBackwardPass<float>::propagate(std::size_t, const RowStage&);
template void ChainBackwardPass<double>::propagate(std::size_t, const RowStage&);

}  // namespace widelimit
