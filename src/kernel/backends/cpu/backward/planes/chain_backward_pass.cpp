#include "kernel/backends/cpu/backward/planes/chain_backward_pass.hpp"

#include <algorithm>

#include "kernel/backends/cpu/backward/planes/kept_windows.hpp"
#include "kernel/backends/cpu/planes/plane_windows.hpp"

namespace widelimit {
namespace {

constexpr AxisOffsets zero{{0, 0}, 1};
constexpr PlaneOffsets zero_offsets{zero, zero, zero};

/// The convolution of a node. Local ones read a plane that was loaded for them without the guards of the chain, which
/// shifted copies would need; they sum over windows instead.
std::optional<Affine> affine_without_guards(const Node& node, const PairGeometry& geometry) {
  std::optional<Affine> affine = affine_of(node, geometry);
  const bool reads_kept = reads_of(node.operation) == Reads::kept_windows;
  if (reads_kept && affine->kind != AffineKind::circular) affine->kind = AffineKind::strided;
  return affine;
}

bool has_zero(const std::array<std::vector<AxisOffsets>, 3>& offsets) {
  return std::all_of(offsets.begin(), offsets.end(), [](const std::vector<AxisOffsets>& axis) {
    return std::find(axis.begin(), axis.end(), zero) != axis.end();
  });
}

/// True if planes of complementary offsets have to be taken apart into planes of one piece. Shifted copies and dense
/// layers keep to their piece; windows, strides and circular convolutions of the backward pass are written for one
/// piece.
bool takes_planes_apart(const std::vector<std::optional<Affine>>& affine) {
  return std::any_of(affine.begin(), affine.end(), [](const std::optional<Affine>& of_instruction) {
    return of_instruction && of_instruction->kind != AffineKind::single_position &&
           of_instruction->kind != AffineKind::shifted;
  });
}

/// Offsets of planes with one piece along an axis.
std::vector<AxisOffsets> apart(const std::vector<AxisOffsets>& offsets) {
  std::vector<AxisOffsets> result;
  for (const AxisOffsets& several : offsets)
    for (std::size_t n = 0; n < static_cast<std::size_t>(several.count); ++n)
      result.push_back({{several.offset[n], 0}, 1});
  return result;
}

}  // namespace

template <typename Scalar>
ChainBackwardPass<Scalar>::ChainBackwardPass(const Program& program, const PairGeometry& geometry,
                                             std::size_t step, BackwardScope scope)
    : of_{program,
          geometry,
          std::get<PlaneStep>(program.steps[step]).chain,
          geometry.chains[step],
          scope.with_ntk,
          scope.with_scalars,
          scope.steep},
      tape_(of_),
      left_planes_(PairSide::left, of_),
      right_planes_(PairSide::right, of_) {
  for (std::size_t i = 0; i < tape_.size(); ++i)
    affine_.push_back(affine_without_guards(of_.node(i), geometry));
  make_planes();
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::make_planes() {
  std::array<std::vector<AxisOffsets>, 3> offsets = of_.chain_geometry.offsets;
  if (takes_planes_apart(affine_))
    for (std::vector<AxisOffsets>& axis : offsets) axis = apart(axis);
  const bool zero_demanded = has_zero(offsets);
  std::vector<RootPlane>& usual = root_planes_.usual;
  if (zero_demanded) usual.push_back({zero_offsets, true});
  // Offsets that agree along the last axis follow one another, because SidePlanes cuts its strips once for all of
  // them.
  for (const AxisOffsets& z : offsets[2])
    for (const AxisOffsets& x : offsets[0])
      for (const AxisOffsets& y : offsets[1])
        if (PlaneOffsets{x, y, z} != zero_offsets) usual.push_back({{x, y, z}, true});
  root_planes_.recorded = usual;
  if (!zero_demanded) root_planes_.recorded.insert(root_planes_.recorded.begin(), {zero_offsets, false});
}

/// Skips instructions whose plane is empty. While inputs are recorded, it also skips those whose result nothing
/// reads, except row stages, which record variances.
template <typename Scalar>
bool ChainBackwardPass<Scalar>::skips(std::size_t i) const {
  if (tape_[i].plane.empty()) return true;
  if (!block_->recording || !of_.geometry.demanded[of_.id(i)].empty()) return false;
  return of_.chain.instructions[i].loads || !needs_variances(of_.node(i).operation);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::begin_block(const PairBlock<Scalar>& block, KeptNodes<Scalar>& kept_nodes) {
  block_ = &block;
  kept_ = &kept_nodes;
  entries_.assign(block.pairs.size(), {});
  stacks_.begin_tile(block.pairs, static_cast<Index>(block.right.size()));
  left_planes_.begin_block(block.left);
  right_planes_.begin_block(block.right);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::end_block() {
  left_planes_.flush();
  right_planes_.flush();
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::begin_plane(const PlaneOffsets& offsets) {
  // At offset 0 the adjoints of variances join in, so those of all other planes must be complete. In the backward
  // pass offset 0 is the last plane.
  if (block_->recording && offsets == zero_offsets) end_block();
  tape_.place(offsets);
  stacks_.cut(planes_a_stack(tape_.length()));
  left_planes_.begin_plane(tape_, offsets[2], 0);
  right_planes_.begin_plane(tape_, offsets[2], stacks_.has_many() ? stacks_.right_places() : 0);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::end_plane() {
  left_planes_.end_plane();
  right_planes_.end_plane();
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::forward(const Stack& stack, const StopRequest& stop) {
  stack_ = &stack;
  interpret(of_.chain, of_.program.graph, timer_, stop, *this);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::backward(const StopRequest& stop) {
  interpret_backward(of_.chain, of_.program.graph, stop, *this);
}

/// An adjoint to which no reader contributed is 0. (Readers may be skipped because their planes are empty.)
template <typename Scalar>
void ChainBackwardPass<Scalar>::begin(std::size_t i) {
  Planes& planes = tape_[i];
  if (!planes.has_adjoint) fill_plane(planes.adjoint, size(planes), Scalar{0}, Scalar{0});
  planes.has_adjoint = true;
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::load(std::size_t i) {
  const Planes& to = tape_[i];
  for_each_pair(to.plane, to.value, [&](Index n, const Plane<Scalar>& plane) {
    read_kept(kept(of_.id(i), n), to.plane, of_.left_sizes(i), of_.right_sizes(i), plane);
  });
  clear_guards(to.plane.layout, stack_->count, to.value);
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::unload(std::size_t i) {
  const Planes& to = tape_[i];
  for_each_pair(to.plane, to.adjoint, [&](Index n, const Plane<Scalar>& plane) {
    add_to_kept(plane, to.plane, of_.left_sizes(i), of_.right_sizes(i), kept(of_.id(i), n));
  });
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::evaluate(std::size_t i, FeatureProduct /*part*/) {
  const Planes& to = tape_[i];
  const Index channels = left().record->layout->channels[of_.id(i)];
  numerics::linear_rows<Scalar>().product_sum(
      left_planes_.arrays(i, stack_->left), right_planes_.arrays(i, right_place()),
      static_cast<std::size_t>(channels), Scalar{1} / static_cast<Scalar>(channels), to.value.nngp, size(to));
  // Inputs have no parameters before them, so their NTK is 0.
  if (of_.with_ntk) std::fill_n(to.value.ntk, size(to), Scalar{0});
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::propagate(std::size_t i, FeatureProduct /*part*/) {
  const Planes& to = tape_[i];
  const Index channels = left().record->layout->channels[of_.id(i)];
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  const Scalar* const* from_left = left_planes_.arrays(i, stack_->left);
  const Scalar* const* from_right = right_planes_.arrays(i, right_place());
  Scalar* product = tape_.scratch(2).nngp;
  const auto& rows = numerics::linear_rows<Scalar>();
  const auto times = [&](const Scalar* other) {
    rows.product_sum(&to.adjoint.nngp, &other, 1, scale, product, size(to));
    return product;
  };
  // K_ab = sum_k x_ak x'_bk / C at entry (a, b), so that x_ak receives K-bar_ab x'_bk / C. SidePlanes adds this up
  // over b, offset by offset.
  for (Index k = 0; k < channels; ++k) {
    if (block_->left_wanted) left_planes_.add(i, k, stack_->left, stack_->count, times(from_right[k]));
    if (block_->right_wanted) right_planes_.add(i, k, right_place(), stack_->count, times(from_left[k]));
  }
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::evaluate(std::size_t i, const AffineNumbers& /*numbers*/) {
  const Affine& affine = *affine_[i];
  if (affine.kind == AffineKind::circular) return sum_around(i);
  const Planes &from = input(i, 0), &to = tape_[i];
  // Windows read over the ends of rows. Guards are cleared only if the instruction before may have left something
  // there.
  const Gaps gaps = of_.chain.instructions[of_.chain.instructions[i].inputs[0]].gaps;
  if (gaps != Gaps::zero && !from.plane.empty() && affine.kind != AffineKind::single_position)
    clear_guards(from.plane.layout, stack_->count, from.value);
  const numerics::PlaneWindows windows = affine.kind == AffineKind::strided && !from.plane.empty()
                                             ? strided_windows(affine, from.plane, to.plane)
                                             : numerics::PlaneWindows{};
  convolve({affine, from.plane, to.plane, stack_->count}, windows, from.value, to.value, scratch());
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::propagate(std::size_t i, const AffineNumbers& numbers) {
  const Affine& affine = *affine_[i];
  with_scalars(i, tape_[i].value, [&](const auto& value, const auto& adjoint, std::size_t count) {
    block_->scalars->add(of_.id(i), numbers, value, adjoint, count);
  });
  if (affine.kind == AffineKind::circular) return spread_around(i);
  Planes &from = input(i, 0), &to = tape_[i];
  if (from.plane.empty()) return;
  give(from, [&](const Plane<Scalar>& target) {
    convolution_.propagate({affine, from.plane, to.plane, stack_->count}, to.adjoint, target, scratch());
  });
}

template <typename Scalar>
template <EntrywiseOperation Node>
void ChainBackwardPass<Scalar>::evaluate(std::size_t i, const Node& node) {
  evaluate_entries(
      node, [&](std::size_t k) { return input(i, k).value; }, of_.chain.instructions[i].inputs.size(),
      size(tape_[i]), tape_[i].value);
}

template <typename Scalar>
template <EntrywiseOperation Node>
void ChainBackwardPass<Scalar>::propagate(std::size_t i, const Node& node) {
  const std::size_t entries = size(tape_[i]), count = of_.chain.instructions[i].inputs.size();
  const auto source = [&](std::size_t k) { return input(i, k).value; };
  if (block_->scalars != nullptr)
    for_each_number(node, source, tape_[i].value, [&](std::size_t number, const auto& of, double divisor) {
      with_scalars(i, of, [&](const auto& value, const auto& adjoint, std::size_t row) {
        block_->scalars->add(of_.id(i), number, divisor, value, adjoint, row);
      });
    });
  for (std::size_t k = 0; k < count; ++k)
    give(input(i, k), [&](const Plane<Scalar>& target) {
      fill_plane(target, entries, Scalar{0}, Scalar{0});
      add_entry_adjoint(node, source, count, k, tape_[i].adjoint, entries, target);
    });
}

template class ChainBackwardPass<float>;
template class ChainBackwardPass<double>;

}  // namespace widelimit
