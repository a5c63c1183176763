#include "kernel/plane_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernel/vector_padding.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Arrays of an instruction that are packed for every offset.
Index packed_arrays(const Program& program, const Instruction& instruction, const StateLayout& state) {
  const Operation& operation = program.graph.nodes[instruction.node].operation;
  const bool has_arrays =
      std::holds_alternative<RowNode>(operation) || std::holds_alternative<InputNode>(operation);
  return has_arrays && !instruction.loads ? state.arrays[instruction.node] : 0;
}

/// Rows of a plane are a few numbers long: chunks of fixed size beat a call of memmove. Reads and writes up
/// to row_padding numbers more; rows are copied in order, so the next one repairs what this one spilt.
template <typename Scalar>
void copy_short_row(const Scalar* source, Index size, Scalar* target) {
  constexpr Index chunk = 8;
  static_assert(chunk <= row_padding);
  for (Index i = 0; i < size; i += chunk) std::memcpy(target + i, source + i, chunk * sizeof(Scalar));
}

/// Plane runs know that the NTK of an input is zero; pair stages read it.
bool feeds_pair_stage(const Program& program, NodeId node) {
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    const auto* pair = std::get_if<PairStep>(&step);
    return pair != nullptr && program.graph.nodes[pair->node].inputs[0] == node;
  });
}

}  // namespace

WorkspaceSize workspace_size(const Program& program, const PairGeometry& geometry, const StateLayout& state,
                             Kernel kernel, Index side, Index pairs) {
  const Index copies = kernel == Kernel::with_ntk ? 2 : 1;
  WorkspaceSize size;
  for (const Step& step : program.steps) {
    if (const auto* plane = std::get_if<PlaneStep>(&step)) {
      Index arrays = 0;
      for (const Instruction& instruction : plane->run.instructions)
        arrays += packed_arrays(program, instruction, state);
      size.packs = std::max(size.packs, arrays * (2 * side + 1) * geometry.plane_capacity);
      size.slot_count = std::max(size.slot_count, plane->run.slot_count);
      continue;
    }
    if (!std::holds_alternative<PairStep>(step)) continue;
    const NodeId node = std::get<PairStep>(step).node;
    const NodeId input = program.graph.nodes[node].inputs[0];
    const Shape& left = geometry.shapes.left[input];
    const Shape& right = geometry.shapes.right[input];
    const auto& stage = *std::get<PairNode>(program.graph.nodes[node].operation).stage;
    Index matrices = padded(static_cast<Index>(stage.scratch_size(left, right)));
    if (!program.as_matrix[input]) matrices += copies * padded(position_count(left) * position_count(right));
    size.matrices = std::max(size.matrices, matrices);
  }
  // Two more slots are the scratch of convolutions.
  size.slots =
      static_cast<Index>(size.slot_count + 2) * copies * (geometry.plane_front + geometry.plane_capacity);
  size.stores = pairs * geometry.store_size;
  return size;
}

template <typename Scalar>
PlaneExecutor<Scalar>::PlaneExecutor(const Program& program, Purpose purpose, Kernel kernel,
                                     bool demand_everything, Index side)
    : program_{program},
      purpose_{purpose},
      kernel_{kernel},
      demand_everything_{demand_everything},
      with_ntk_{kernel == Kernel::with_ntk},
      side_{side},
      sums_(program.graph.nodes.size()) {
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id)
    if (std::holds_alternative<ReadoutNode>(program.graph.nodes[id].operation))
      sums_[id].resize(static_cast<std::size_t>(side * side));
}

template <typename Scalar>
void PlaneExecutor<Scalar>::take_shapes(const StateLayout& left, const StateLayout& right) {
  if (has_shapes_ && left.shape == left_shape_ && right.shape == right_shape_) return;
  geometry_ = make_geometry(program_, left.shape, right.shape, purpose_, kernel_, demand_everything_);
  const WorkspaceSize size = workspace_size(program_, geometry_, left, kernel_, side_, side_ * side_);
  slot_count_ = size.slot_count;
  slots_.grow(size.slots);
  packs_.grow(size.packs);
  stores_.grow(size.stores);
  matrices_.grow(size.matrices);
  // The margins of the slots must be zero, and lie elsewhere now.
  std::fill_n(slots_.data(), size.slots, Scalar{0});
  left_shape_ = left.shape;
  right_shape_ = right.shape;
  has_shapes_ = true;
}

template <typename Scalar>
void PlaneExecutor<Scalar>::run(const Tile<Scalar>& tile) {
  tile_ = &tile;
  take_shapes(tile.left[0]->layout(), tile.right[0]->layout());
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[s]))
      execute(*plane, s);
    else if (const auto* input = std::get_if<InputStep>(&program_.steps[s]))
      execute(*input);
    else
      execute(std::get<PairStep>(program_.steps[s]));
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::record_state(InputState<Scalar>& state) {
  const Tile<Scalar> tile{{&state}, {&state}, {{0, 0, true}}};
  recorded_ = &state;
  run(tile);
  recorded_ = nullptr;
}

template <typename Scalar>
Plane<Scalar> PlaneExecutor<Scalar>::slot(std::size_t number) {
  const Index size = geometry_.plane_front + geometry_.plane_capacity;
  const auto copies = with_ntk_ ? Index{2} : Index{1};
  Scalar* nngp = slots_.data() + static_cast<Index>(number) * copies * size + geometry_.plane_front;
  return {nngp, with_ntk_ ? nngp + size : nullptr};
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const PlaneStep& step, std::size_t number) {
  const Index3& guard = geometry_.guards[number];
  const Offsets& demanded = geometry_.demanded[step.run.root];
  prepare_packs(step.run);
  begin_target(step.target);
  // Variances are recorded at offset 0 and needed at all others, so it comes first; and it is evaluated for
  // them even where the root itself is not demanded. Results keep the same order, so that poolings of an
  // input with itself add up to its recorded variances bit for bit.
  const bool zero_demanded = demanded.contains({0, 0, 0});
  if (recording() || zero_demanded) execute_offset(step, {0, 0, 0}, guard, zero_demanded);
  demanded.for_each([&](const Index3& offset) {
    if (offset != Index3{0, 0, 0}) execute_offset(step, offset, guard, true);
  });
  finish_target(step.target);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::prepare_packs(const Run& run) {
  placed_.resize(std::max(placed_.size(), run.instructions.size()));
  Scalar* next = packs_.data();
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    placed.arrays = packed_arrays(program_, run.instructions[i], tile_->left[0]->layout());
    const auto take = [&](std::vector<Scalar*>& pointers, Index planes) {
      pointers.clear();
      for (Index k = 0; k < placed.arrays; ++k, next += planes * geometry_.plane_capacity)
        pointers.push_back(next);
    };
    take(placed.left, side_);
    take(placed.right, side_);
    take(placed.repeated, 1);
    placed.left_row.resize(placed.left.size());
    placed.right_row.resize(placed.left.size());
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute_offset(const PlaneStep& step, const Index3& offset, const Index3& guard,
                                           bool is_demanded) {
  const Run& run = step.run;
  place(run, offset, guard);
  const std::size_t last = run.instructions.size() - 1;
  if (placed_[last].box.empty()) return;
  if (!recording())
    for (std::size_t i = 0; i <= last; ++i) pack(run, i);
  stack_pairs(run);
  for (const Stack& stack : stacks_) {
    choose_rows(run, stack);
    for (std::size_t i = 0; i <= last; ++i) evaluate(run, i, stack);
    if (!is_demanded) continue;
    const Plane<Scalar> planes = slot(run.instructions[last].slot);
    for (Index n = 0; n < stack.count; ++n)
      put(step.target, placed_[last], stack.first_pair + n, planes + n * placed_[last].layout.length);
  }
}

/// Cuts the tile's pairs into stacks whose planes fit into a slot.
template <typename Scalar>
void PlaneExecutor<Scalar>::stack_pairs(const Run& run) {
  Index length = 1;
  for (std::size_t i = 0; i < run.instructions.size(); ++i)
    if (!placed_[i].box.empty()) length = std::max(length, placed_[i].layout.length);
  const Index most = std::max<Index>(1, stacked_numbers / length);
  stacks_.clear();
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    const TilePair& members = tile_->pairs[static_cast<std::size_t>(pair)];
    const bool joins = !stacks_.empty() && !members.same_input && !stacks_.back().same_input &&
                       stacks_.back().left == members.left && stacks_.back().count < most;
    if (joins)
      ++stacks_.back().count;
    else
      stacks_.push_back({members.left, members.right, pair, 1, members.same_input});
  }
}

/// Points the rows of auxiliary arrays to those of a stack.
template <typename Scalar>
void PlaneExecutor<Scalar>::choose_rows(const Run& run, const Stack& stack) {
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    const Index length = placed.layout.length;
    for (std::size_t k = 0; k < placed.left.size(); ++k) {
      const Scalar* left = placed.left[k] + stack.left * length;
      placed.left_row[k] = left;
      placed.right_row[k] = placed.right[k] + stack.right * length;
      if (stack.count == 1 || placed.box.empty()) continue;
      for (Index n = 0; n < stack.count; ++n) std::copy_n(left, length, placed.repeated[k] + n * length);
      placed.left_row[k] = placed.repeated[k];
    }
  }
}

/// Every node of a run is evaluated at one offset, which follows from the root's through the strides on the
/// way.
template <typename Scalar>
void PlaneExecutor<Scalar>::place(const Run& run, const Index3& offset, const Index3& guard) {
  offsets_.assign(run.instructions.size(), offset);
  for (std::size_t i = run.instructions.size(); i-- > 0;) {
    const Instruction& instruction = run.instructions[i];
    placed_[i].box = Box(three_axes(geometry_.shapes.left[instruction.node]),
                         three_axes(geometry_.shapes.right[instruction.node]), offsets_[i]);
    placed_[i].layout = PlaneLayout(placed_[i].box.extent, guard);
    for (const std::size_t input : instruction.inputs)
      offsets_[input] = input_offset(instruction, run.instructions[input].node, offsets_[i]);
  }
}

template <typename Scalar>
Index3 PlaneExecutor<Scalar>::input_offset(const Instruction& instruction, NodeId input,
                                           const Index3& offset) const {
  const auto* affine = std::get_if<AffineNode>(&node_of(instruction).operation);
  if (affine == nullptr) return offset;
  const Window3 window(affine->window);
  const Index3 left_front = window.front(three_axes(geometry_.shapes.left[input]));
  const Index3 right_front = window.front(three_axes(geometry_.shapes.right[input]));
  Index3 result;
  for (std::size_t k = 0; k < 3; ++k)
    result[k] = window.stride[k] * offset[k] + left_front[k] - right_front[k];
  return result;
}

template <typename Scalar>
void PlaneExecutor<Scalar>::pack(const Run& run, std::size_t number) {
  const Placed& placed = placed_[number];
  if (placed.arrays == 0 || placed.box.empty()) return;
  const NodeId node = run.instructions[number].node;
  const auto pack_side = [&](const std::vector<const InputState<Scalar>*>& inputs,
                             const std::vector<Scalar*>& targets, const Index3& shape, const Index3& origin) {
    for (Index k = 0; k < placed.arrays; ++k)
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Scalar* source = inputs[i]->array(node, k);
        Scalar* target = targets[static_cast<std::size_t>(k)] + static_cast<Index>(i) * placed.layout.length;
        for_each_row(placed.layout.extent, [&](Index x, Index y) {
          copy_short_row(source + ((origin[0] + x) * shape[1] + origin[1] + y) * shape[2] + origin[2],
                         placed.layout.extent[2], target + placed.layout.at(x, y));
        });
      }
  };
  const Box& box = placed.box;
  pack_side(tile_->left, placed.left, three_axes(geometry_.shapes.left[node]), box.origin);
  pack_side(tile_->right, placed.right, three_axes(geometry_.shapes.right[node]),
            {box.origin[0] + box.offset[0], box.origin[1] + box.offset[1], box.origin[2] + box.offset[2]});
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const InputStep& step) {
  const NodeId node = step.node;
  if (geometry_.demanded[node].empty()) return;
  const StoreLayout& layout = geometry_.layouts[node];
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    const TilePair& members = tile_->pairs[static_cast<std::size_t>(pair)];
    const InputState<Scalar>& left = *tile_->left[static_cast<std::size_t>(members.left)];
    const InputState<Scalar>& right = *tile_->right[static_cast<std::size_t>(members.right)];
    const Plane<Scalar> target = store(node, pair);
    const Index channels = left.layout().arrays[node];
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, layout.left_positions(),
                   layout.right_positions(), channels, Scalar{1} / static_cast<Scalar>(channels),
                   {left.array(node, 0), left.layout().positions[node]},
                   {right.array(node, 0), right.layout().positions[node]}, Scalar{0}, target.nngp,
                   layout.right_positions());
    if (with_ntk_ && feeds_pair_stage(program_, node)) std::fill_n(target.ntk, layout.size(), Scalar{0});
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const PairStep& step) {
  const auto& node = std::get<PairNode>(program_.graph.nodes[step.node].operation);
  const NodeId input = program_.graph.nodes[step.node].inputs[0];
  if (recording()) record_pair_state(node, step.node);
  if (geometry_.demanded[step.node].empty()) return;
  const StoreLayout& out = geometry_.layouts[step.node];
  const Shape& left_shape = geometry_.shapes.left[input];
  const Shape& right_shape = geometry_.shapes.right[input];
  const Index rows = position_count(left_shape), columns = position_count(right_shape);
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    const TilePair& members = tile_->pairs[static_cast<std::size_t>(pair)];
    const InputState<Scalar>& left = *tile_->left[static_cast<std::size_t>(members.left)];
    const InputState<Scalar>& right = *tile_->right[static_cast<std::size_t>(members.right)];
    const MatrixPair matrices = input_matrices(input, pair);
    const Plane<Scalar> target = store(step.node, pair);
    std::fill_n(target.nngp, out.size(), std::numeric_limits<Scalar>::quiet_NaN());
    if (with_ntk_) std::fill_n(target.ntk, out.size(), std::numeric_limits<Scalar>::quiet_NaN());
    const Index ntk_rows = with_ntk_ ? rows : 0, ntk_columns = with_ntk_ ? columns : 0;
    const PairView<Scalar> view{.nngp = {matrices.nngp, rows, columns},
                                .ntk = {matrices.ntk, ntk_rows, ntk_columns},
                                .left_variance = left.array(step.node, 0),
                                .right_variance = right.array(step.node, 0),
                                .left_state = left.extra(step.node),
                                .right_state = right.extra(step.node),
                                .left_shape = left_shape,
                                .right_shape = right_shape,
                                .same_input = members.same_input,
                                .wanted = geometry_.demanded[step.node].entries()};
    PairResult<Scalar> result{
        .nngp = {target.nngp, out.left_positions(), out.right_positions()},
        .ntk = {target.ntk, with_ntk_ ? out.left_positions() : 0, with_ntk_ ? out.right_positions() : 0},
        .scratch = matrices.scratch};
    try {
      node.stage->apply(view, result);
    } catch (const NumericalError& error) {
      throw NumericalError(fmt::format("{}: {}", program_.graph.nodes[step.node].path, error.what()));
    }
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::record_pair_state(const PairNode& node, NodeId id) {
  const NodeId input = program_.graph.nodes[id].inputs[0];
  const Shape& shape = geometry_.shapes.left[input];
  const Index positions = position_count(shape);
  const Eigen::Map<const Matrix<Scalar>> nngp(input_matrices(input, 0).nngp, positions, positions);
  Scalar* variances = recorded_->array(id, 0);
  for (Index a = 0; a < positions; ++a) variances[a] = nngp(a, a);
  node.stage->prepare(SelfView<Scalar>{nngp, shape}, recorded_->extra(id));
}

template class PlaneExecutor<float>;
template class PlaneExecutor<double>;

}  // namespace widelimit
