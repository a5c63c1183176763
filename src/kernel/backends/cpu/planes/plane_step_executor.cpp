#include "kernel/backends/cpu/planes/plane_step_executor.hpp"

#include <algorithm>

#include "kernel/backends/cpu/planes/plane_evaluator.hpp"
#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/backends/cpu/planes/whole_chains.hpp"

namespace widelimit {
namespace {

bool is_zero_only(const AxisOffsets& axis) { return axis.count == 1 && axis.offset[0] == 0; }

}  // namespace

template <typename Scalar>
PlaneStepExecutor<Scalar>::PlaneStepExecutor(const TileWork<Scalar>& work, const StateLayout& state,
                                             const PlaneStep& step, const ChainGeometry& geometry,
                                             ReadoutSums<Scalar>& sums)
    : work_{work},
      step_{step},
      geometry_{geometry},
      placed_(step.chain.instructions.size()),
      is_whole_{runs_whole(work.pair.program, work.pair.geometry, step)},
      blocks_(work),
      end_{make_plane_end(work, sums, step.target)} {
  const auto& instructions = step.chain.instructions;
  planes_.reserve(instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) prepare(i, state);
  for (std::size_t i = 0; i < instructions.size(); ++i) placed_[i].skips_ntk = skips_ntk(i);
  take_room_for_arrays();
  blocked_input_ = blocked_input(work, placed_);
}

/// Prepares what depends neither on the tile nor on the offset.
template <typename Scalar>
void PlaneStepExecutor<Scalar>::prepare(std::size_t number, const StateLayout& state) {
  PlacedInstruction<Scalar>& placed = placed_[number];
  placed.instruction = &step_.chain.instructions[number];
  const auto shared = std::find_if(planes_.begin(), planes_.end(), [&](const SharedPlane& plane) {
    return share_plane(plane.instruction, number);
  });
  placed.plane = &(shared != planes_.end() ? *shared : planes_.emplace_back(SharedPlane{number, {}})).plane;
  const NodeId node = placed.instruction->node;
  placed.planes = work_.workspace.slot(placed.instruction->slot);
  placed.affine = affine_of(work_.pair.node(node), work_.pair.geometry);
  if (!reads_arrays(work_.pair.program, *placed.instruction)) return;
  const auto states_of = [&](Side side, const Index3& sizes) {
    const StripLayout strip(geometry_, number, sizes, side);
    return SideStates<Scalar>{side, {}, node, state.arrays[node], strip};
  };
  const PairGeometry& geometry = work_.pair.geometry;
  placed.arrays.emplace(states_of(Side::left, geometry.left_sizes[node]),
                        states_of(Side::right, geometry.right_sizes[node]));
}

template <typename Scalar>
bool PlaneStepExecutor<Scalar>::share_plane(std::size_t first, std::size_t second) const {
  const auto& instructions = step_.chain.instructions;
  const NodeId one = instructions[first].node, other = instructions[second].node;
  const PairGeometry& geometry = work_.pair.geometry;
  return geometry_.maps[first] == geometry_.maps[second] &&
         geometry.left_sizes[one] == geometry.left_sizes[other] &&
         geometry.right_sizes[one] == geometry.right_sizes[other];
}

/// True for inputs that only convolutions and dense layers read, which know that the NTK of an input is 0. Other
/// readers, and the root's target, need the zeros.
template <typename Scalar>
bool PlaneStepExecutor<Scalar>::skips_ntk(std::size_t number) const {
  const Instruction& source = step_.chain.instructions[number];
  if (source.loads || !multiplies_features(work_.pair.node(source.node).operation)) return false;
  if (number + 1 == placed_.size()) return false;
  return std::all_of(placed_.begin(), placed_.end(), [&](const PlacedInstruction<Scalar>& reader) {
    const auto& inputs = reader.instruction->inputs;
    const bool reads = std::find(inputs.begin(), inputs.end(), number) != inputs.end();
    return !reads || (reader.affine && reader.affine->kind != AffineKind::circular);
  });
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::take_room_for_arrays() {
  Scalar *packs = work_.workspace.part(WorkspacePart::packs),
         *strips = work_.workspace.part(WorkspacePart::strips);
  const bool uses_strips = work_.pair.geometry.uses_strips(step_.chain.root);
  for (PlacedInstruction<Scalar>& placed : placed_)
    if (placed.arrays) placed.arrays->take_room(packs, strips, uses_strips, work_.pair.planes, work_.size);
}

/// A stack saves a call for each instruction and pair. Packing arrays for it costs about as much as a call for each
/// array, once for a row of pairs.
template <typename Scalar>
bool PlaneStepExecutor<Scalar>::stacks_pay() const {
  Index arrays = 0;
  for (const PlacedInstruction<Scalar>& placed : placed_)
    arrays += placed.arrays ? placed.arrays->count() : 0;
  const auto side = static_cast<Index>(std::min(work_.tile().left.size(), work_.tile().right.size()));
  return static_cast<Index>(placed_.size()) * (side - 1) > arrays;
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::begin_tile() {
  const Tile<Scalar>& tile = work_.tile();
  for (PlacedInstruction<Scalar>& placed : placed_)
    if (placed.arrays) placed.arrays->read_inputs(tile.left, tile.right);
  stacks_.begin_tile(tile.pairs, static_cast<Index>(tile.right.size()));
  stacks_pay_ = stacks_pay();
  last_.strips.reset();
  end_->begin_tile();
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::execute() {
  begin_tile();
  if (is_whole_) return execute_whole();
  // Variances are recorded at offset 0 and needed at all others, so it comes first, and is evaluated for them even if
  // the root itself is not demanded. Results keep the same order, so that poolings of an input with itself add up to
  // its recorded variances bit for bit.
  constexpr AxisOffsets zero{{0, 0}, 1};
  const bool zero_demanded = work_.pair.geometry.demanded[step_.chain.root].contains({0, 0, 0});
  if (work_.recording() || zero_demanded) execute_offset({zero, zero, zero}, zero_demanded);
  end_group();
  const auto& offsets = geometry_.offsets;
  // The last axis is outermost, because strips and the sums of poolings serve all offsets that agree in it.
  for (const AxisOffsets& z : offsets[2]) {
    for (const AxisOffsets& x : offsets[0])
      for (const AxisOffsets& y : offsets[1])
        if (!is_zero_only(x) || !is_zero_only(y) || !is_zero_only(z)) execute_offset({x, y, z}, true);
    end_group();
  }
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::execute_whole() {
  constexpr AxisOffsets zero{{0, 0}, 1};
  // Offset 0 by itself records the variances, before the matrix passes through the chain.
  if (work_.recording()) execute_offset({zero, zero, zero}, false);
  last_.placed.reset();
  const auto &left = work_.pair.geometry.left_sizes, &right = work_.pair.geometry.right_sizes;
  for (auto& [instruction, plane] : planes_) {
    const NodeId node = step_.chain.instructions[instruction].node;
    plane.place_whole(left[node], right[node]);
  }
  const NodeId node = step_.chain.root;
  for (PlacedInstruction<Scalar>& placed : placed_)
    if (placed.arrays)
      work_.timer.time(placed.instruction->node,
                       [&] { placed.arrays->pack_whole(left[node][2], right[node][2]); });
  stacks_.cut(1);
  for (const Stack& stack : stacks_) execute_stack(stack, true);
}

/// Ends the group of offsets that agree along the last axis.
template <typename Scalar>
void PlaneStepExecutor<Scalar>::end_group() {
  work_.timer.time(step_.target, [&] { end_->end_group(); });
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::execute_offset(const PlaneOffsets& offsets, bool is_demanded) {
  begin_offset(offsets);
  if (root().at().empty()) return;
  cut_stacks();
  if (is_demanded) end_->place(root().at());
  place_arrays();
  for (const Stack& stack : stacks_) execute_stack(stack, is_demanded);
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::begin_offset(const PlaneOffsets& offsets) {
  blocks_.begin_offset();
  // If only one offset is demanded, planes stay placed from the last tile.
  if (last_.placed != offsets) place(offsets);
  last_.placed = offsets;
}

/// Places the plane of every instruction. Each offset is computed from the root's, not from that of the next
/// instruction, so that the computations need not wait for each other.
template <typename Scalar>
void PlaneStepExecutor<Scalar>::place(const PlaneOffsets& offsets) {
  for (auto& [instruction, plane] : planes_) {
    const NodeId node = step_.chain.instructions[instruction].node;
    plane.place(geometry_, instruction, offsets, work_.pair.geometry.left_sizes[node],
                work_.pair.geometry.right_sizes[node]);
  }
  for (PlacedInstruction<Scalar>& placed : placed_) {
    const auto& inputs = placed.instruction->inputs;
    if (placed.affine && placed.affine->kind == AffineKind::strided && !inputs.empty())
      placed.windows = strided_windows(*placed.affine, placed_[inputs[0]].at(), placed.at());
  }
}

/// Cuts the tile's pairs into stacks whose planes, of any instruction, fit into a slot.
template <typename Scalar>
void PlaneStepExecutor<Scalar>::cut_stacks() {
  Index length = 1;
  for (const SharedPlane& shared : planes_)
    if (!shared.plane.empty()) length = std::max(length, shared.plane.layout.length);
  const Index most = stacks_pay_ ? planes_a_stack(length) : 1;
  if (!blocked_input_) return stacks_.cut(most);
  stacks_.cut_by_blocks(most, block_side);
  // If pairs are stacked after all, the input's products are written to its slot; ProductBlocks had let it point to a
  // product.
  placed_[*blocked_input_].planes = work_.workspace.slot(placed_[*blocked_input_].instruction->slot);
}

/// Lays out the auxiliary arrays of all instructions for the placed planes.
template <typename Scalar>
void PlaneStepExecutor<Scalar>::place_arrays() {
  // The arrays of an input with itself are only being made at offset 0; PlaneEvaluator packs each as soon as it is
  // there.
  if (work_.recording() && root().at().is_diagonal) {
    for (PlacedInstruction<Scalar>& placed : placed_)
      if (placed.arrays) placed.arrays->expect_packs(placed.at());
    return;
  }
  const bool strips = work_.pair.geometry.uses_strips(step_.chain.root) && !root().at().is_diagonal;
  const Index at = root().at().axis[2].offset[0];
  const bool moved = strips && last_.strips != at;
  if (moved) last_.strips = at;
  const ArrayPlacement placement{.uses_strips = strips,
                                 .cuts_strips = moved,
                                 .stacked = stacks_.has_many(),
                                 .right_places = stacks_.right_places()};
  for (PlacedInstruction<Scalar>& placed : placed_)
    if (placed.arrays)
      work_.timer.time(placed.instruction->node, [&] { placed.arrays->place(placed.at(), placement); });
}

template <typename Scalar>
void PlaneStepExecutor<Scalar>::execute_stack(const Stack& stack, bool is_demanded) {
  const bool in_blocks = blocked_input_ && !stacks_.has_many();
  for (std::size_t i = 0; i < placed_.size(); ++i)
    if (placed_[i].arrays && !(in_blocks && i == *blocked_input_))
      placed_[i].arrays->choose(stack, stacks_.has_many());
  PlaneEvaluator<Scalar> evaluator(work_, placed_, in_blocks ? &blocks_ : nullptr, stack);
  interpret(step_.chain, work_.pair.program.graph, work_.timer, work_.stop, evaluator);
  if (!is_demanded) return;
  const Plane<Scalar> planes = root().planes;
  if (root().instruction->gaps != Gaps::zero) clear_guards(root().at().layout, stack.count, planes);
  work_.timer.time(step_.target, [&] { end_->put(root().at(), stack, planes); });
}

template class PlaneStepExecutor<float>;
template class PlaneStepExecutor<double>;

}  // namespace widelimit
