// Row stages of a run, forth and back.
#include <algorithm>

#include "kernel/derivatives/run_walk.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "kernel/variance_checks.hpp"

namespace widelimit {

/// The variances in front of a row stage and its auxiliary arrays, of all positions: offset 0.
template <typename Scalar>
void RunWalk<Scalar>::record(std::size_t i) {
  const NodeId id = of_.id(i);
  InputRecord<Scalar>& record = *left().record;
  for_each_row_of(tape_[i].plane, of_.left_sizes(i), of_.right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    std::copy_n(input(i, 0).nngp.data() + entry, count, record.variances(id) + a);
                  });
  prepare_row_stage(record, id, of_.node(i));
}

template <typename Scalar>
PackedArrays<Scalar> RunWalk<Scalar>::packed(std::size_t i, const RowStage& stage) {
  const auto& pair = now_.block->pairs[now_.pair];
  return PackedArrays<Scalar>(left_planes_.arrays(pair.left, i, *left().record, tape_),
                              right_planes_.arrays(pair.right, i, *right().record, tape_),
                              stage.auxiliary_count(), tape_[i].size());
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const RowNode& row) {
  const bool recording = now_.block->recording;
  if (recording && is_diagonal(i)) record(i);
  if (recording && of_.geometry.demanded[of_.id(i)].empty()) return;
  TapeEntry<Scalar>&to = tape_[i], &from = input(i, 0);
  const PackedArrays<Scalar> arrays = packed(i, *row.stage);
  const Plane<Scalar> plane = to.value();
  // A stage need not know what to make of the numbers in guards.
  if (!row.stage->clears_gaps()) clear_guards(from.plane.layout, 1, from.value());
  copy_plane(from.value(), to.size(), plane);
  const numerics::DualRow<Scalar> entries{plane.nngp, plane.ntk, arrays.left.data(), arrays.right.data(),
                                          to.size()};
  if (is_diagonal(i))
    row.stage->apply_self(entries);
  else
    row.stage->apply(entries);
}

/// Of all positions, at once: at offset 0 they are needed before the plane ends.
template <typename Scalar>
void RunWalk<Scalar>::add_variances(std::size_t i, const Scalar* adjoints) {
  Scalar* variances = left().adjoint->variances(of_.id(i));
  for_each_row_of(tape_[i].plane, of_.left_sizes(i), of_.right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    for (Index z = 0; z < count; ++z) variances[a + z] += adjoints[entry + z];
                  });
}

/// The way back through the stage alone: the adjoints behind it become those in front of it.
template <typename Scalar>
void RunWalk<Scalar>::stage_back(std::size_t i, const RowStage& stage) {
  TapeEntry<Scalar>&to = tape_[i], &from = input(i, 0);
  const PackedArrays<Scalar> arrays = packed(i, stage);
  const Plane<Scalar> value = from.value(), adjoint = to.adjoint();
  if (variances_.size() < 2 * to.size()) variances_.resize(2 * to.size());
  Scalar *of_left = variances_.data(), *of_right = variances_.data() + to.size();
  const numerics::AdjointRow<Scalar> entries{value.nngp,
                                             value.ntk,
                                             arrays.left_variance,
                                             arrays.right_variance,
                                             arrays.left.data(),
                                             arrays.right.data(),
                                             adjoint.nngp,
                                             adjoint.ntk,
                                             of_left,
                                             of_right,
                                             to.size()};
  if (is_diagonal(i)) {
    name_layer(of_.node(i), [&] { stage.apply_self_adjoint(entries); });
    if (stage.mixes_variances()) add_variances(i, of_left);
    return;
  }
  name_layer(of_.node(i), [&] { stage.apply_adjoint(entries); });
  const auto& pair = now_.block->pairs[now_.pair];
  left_planes_.add(pair.left, i, of_left, to.size());
  right_planes_.add(pair.right, i, of_right, to.size());
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const RowNode& row) {
  TapeEntry<Scalar>&to = tape_[i], &from = input(i, 0);
  const bool recording = now_.block->recording;
  if (!recording || !of_.geometry.demanded[of_.id(i)].empty()) {
    stage_back(i, *row.stage);
    add_times(to.nngp_adjoint, 1, from.nngp_adjoint);
    add_times(to.ntk_adjoint, 1, from.ntk_adjoint);
  }
  if (!recording || !is_diagonal(i)) return;
  // What all pairs, and all other offsets, made of the variances.
  Scalar* variances = left().adjoint->variances(of_.id(i));
  row.stage->prepare_adjoint(variances,
                             static_cast<std::size_t>(left().record->layout->positions[of_.id(i)]));
  for_each_row_of(to.plane, of_.left_sizes(i), of_.right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    Scalar* row_adjoint = from.nngp_adjoint.data() + entry;
                    for (Index z = 0; z < count; ++z) row_adjoint[z] += variances[a + z];
                  });
}

template void RunWalk<float>::evaluate(std::size_t, const RowNode&);
template void RunWalk<double>::evaluate(std::size_t, const RowNode&);
template void RunWalk<float>::go_back(std::size_t, const RowNode&);
template void RunWalk<double>::go_back(std::size_t, const RowNode&);

}  // namespace widelimit
