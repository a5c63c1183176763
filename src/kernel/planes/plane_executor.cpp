#include "kernel/planes/plane_executor.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>

#include "kernel/planes/plane_sums.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "kernel/variance_checks.hpp"
#include "numerics/gemm.hpp"

namespace widelimit {
namespace {

/// Auxiliary arrays of an instruction.
Index packed_arrays(const Program& program, const Instruction& instruction, const StateLayout& state) {
  const Operation& operation = program.graph.nodes[instruction.node].operation;
  const bool has_arrays =
      std::holds_alternative<RowNode>(operation) || std::holds_alternative<InputNode>(operation);
  return has_arrays && !instruction.loads ? state.arrays[instruction.node] : 0;
}

}  // namespace

WorkspaceSize workspace_size(const Program& program, const PairGeometry& geometry, const StateLayout& state,
                             Purpose purpose, Kernel kernel, Index side, Index pairs) {
  const Index copies = kernel == Kernel::with_ntk ? 2 : 1;
  WorkspaceSize size;
  for (const Step& step : program.steps) {
    if (const auto* plane = std::get_if<PlaneStep>(&step)) {
      Index arrays = 0;
      for (const Instruction& instruction : plane->run.instructions)
        arrays += packed_arrays(program, instruction, state);
      size.packs = std::max(size.packs, arrays * 3 * side * geometry.plane_capacity);
      if (geometry.uses_strips(plane->run.root))
        size.strips = std::max(size.strips, arrays * 2 * side * geometry.strip_capacity);
      size.slot_count = std::max(size.slot_count, plane->run.slot_count);
      if (std::holds_alternative<PoolNode>(program.graph.nodes[plane->target].operation))
        size.row_sums = std::max(size.row_sums, pairs * copies * pool_row_sums(geometry, plane->target));
      continue;
    }
    if (!std::holds_alternative<PairStep>(step)) continue;
    const NodeId node = std::get<PairStep>(step).node;
    const NodeId input = program.graph.nodes[node].inputs[0];
    const Shape& left = geometry.shapes.left[input];
    const Shape& right = geometry.shapes.right[input];
    const auto& stage = *std::get<PairNode>(program.graph.nodes[node].operation).stage;
    Index matrices = padded(static_cast<Index>(stage.scratch_size(left, right)));
    const bool assembles = purpose == Purpose::state || functional_stage(stage) == nullptr;
    if (assembles && !program.as_matrix[input])
      matrices += copies * padded(position_count(left) * position_count(right));
    size.matrices = std::max(size.matrices, matrices);
  }
  const Index slot = geometry.plane_front + geometry.plane_capacity;
  // Two more slots are the scratch of convolutions.
  size.slots = static_cast<Index>(size.slot_count + 2) * copies * slot;
  // What follows a plane is cleared for convolutions, the next one's margin.
  const Index inputs = std::min(side, block_side);
  size.products = inputs * inputs * slot + geometry.plane_front;
  // Rows are read by whole vectors.
  size.stores = pairs * geometry.store_size + row_padding;
  return size;
}

template <typename Scalar>
PlaneExecutor<Scalar>::PlaneExecutor(const Program& program, Purpose purpose, Kernel kernel,
                                     bool demand_everything, Index largest_side, StopRequest stop)
    : program_{program},
      purpose_{purpose},
      kernel_{kernel},
      demand_everything_{demand_everything},
      with_ntk_{kernel == Kernel::with_ntk},
      stop_{stop},
      sums_(program.graph.nodes.size()) {
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id)
    if (std::holds_alternative<ReadoutNode>(program.graph.nodes[id].operation))
      sums_[id].resize(static_cast<std::size_t>(largest_side * largest_side));
}

template <typename Scalar>
void PlaneExecutor<Scalar>::take_shapes(const StateLayout& left, const StateLayout& right, Index side) {
  const bool same_shapes = has_shapes_ && left.shape == left_shape_ && right.shape == right_shape_;
  if (same_shapes && side <= side_) return;
  if (!same_shapes)
    geometry_ = make_geometry(program_, left.shape, right.shape, purpose_, kernel_, demand_everything_);
  side_ = side;
  const WorkspaceSize size =
      workspace_size(program_, geometry_, left, purpose_, kernel_, side_, side_ * side_);
  slot_count_ = size.slot_count;
  slots_.grow(size.slots);
  packs_.grow(size.packs);
  strips_.grow(size.strips);
  stores_.grow(size.stores);
  matrices_.grow(size.matrices);
  products_.grow(size.products);
  // The margins of the slots must be zero, and lie elsewhere now.
  std::fill_n(slots_.data(), size.slots, Scalar{0});
  std::fill_n(products_.data(), size.products, Scalar{0});
  scratch_ = {slot(slot_count_), slot(slot_count_ + 1)};
  left_shape_ = left.shape;
  right_shape_ = right.shape;
  has_shapes_ = true;
}

template <typename Scalar>
void PlaneExecutor<Scalar>::run(const Tile<Scalar>& tile) {
  tile_ = &tile;
  take_shapes(tile.left[0]->layout(), tile.right[0]->layout(),
              static_cast<Index>(std::max(tile.left.size(), tile.right.size())));
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[s]))
      execute(*plane, s);
    else if (const auto* input = std::get_if<InputStep>(&program_.steps[s]))
      timer_.time(input->node, [&] { execute(*input); });
    else
      timer_.time(std::get<PairStep>(program_.steps[s]).node,
                  [&] { execute(std::get<PairStep>(program_.steps[s])); });
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
  const Offsets& demanded = geometry_.demanded[step.run.root];
  run_ = &geometry_.runs[number];
  prepare(step.run);
  begin_target(step.target);
  // Variances are recorded at offset 0 and needed at all others, so it comes first; and it is evaluated for
  // them even where the root itself is not demanded. Results keep the same order, so that poolings of an
  // input with itself add up to its recorded variances bit for bit.
  constexpr AxisOffsets zero{{0, 0}, 1};
  const bool zero_demanded = demanded.contains({0, 0, 0});
  if (recording() || zero_demanded) execute_offset(step, {zero, zero, zero}, zero_demanded);
  end_group(step.target);
  const auto& offsets = run_->offsets;
  const auto is_zero_only = [](const AxisOffsets& axis) { return axis.count == 1 && axis.offset[0] == 0; };
  // The last axis outermost: strips, and sums of poolings, serve all offsets that agree in it.
  for (const AxisOffsets& z : offsets[2]) {
    for (const AxisOffsets& x : offsets[0])
      for (const AxisOffsets& y : offsets[1])
        if (!is_zero_only(x) || !is_zero_only(y) || !is_zero_only(z)) execute_offset(step, {x, y, z}, true);
    end_group(step.target);
  }
}

/// After all offsets that agree along the last axis.
template <typename Scalar>
void PlaneExecutor<Scalar>::end_group(NodeId target) {
  if (is_pool(target))
    timer_.time(target, [&] { pool_.end_group(scratch_[0].nngp, geometry_.plane_capacity - row_padding); });
}

/// What does not depend on the offset.
template <typename Scalar>
void PlaneExecutor<Scalar>::prepare(const Run& run) {
  placed_.resize(std::max(placed_.size(), run.instructions.size()));
  Index arrays = 0;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const Instruction& instruction = run.instructions[i];
    placed_[i].planes = slot(instruction.slot);
    placed_[i].affine.reset();
    placed_[i].gap_rows = run_->complements ? run_->gap(i, 1) : 0;
    const Node& node = node_of(instruction);
    if (const auto* affine = std::get_if<AffineNode>(&node.operation))
      placed_[i].affine = affine_of(*affine, node.inputs[0]);
    else if (const auto* local = std::get_if<LocalAffineNode>(&node.operation))
      placed_[i].affine = affine_of(local->affine, node.inputs[0]);
    placed_[i].arrays = packed_arrays(program_, instruction, tile_->left[0]->layout());
    arrays += placed_[i].arrays;
  }
  // A stack saves a call an instruction and pair. Packing an array for it costs as much, once a row of pairs.
  const auto side = static_cast<Index>(std::min(tile_->left.size(), tile_->right.size()));
  stacks_pay_ = static_cast<Index>(run.instructions.size()) * (side - 1) > arrays;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) placed_[i].skips_ntk = skips_ntk(run, i);
  stacked_ = 0;
  blocked_input_ = blocked_input(run);
  take_packs(run);
}

/// Of inputs that only convolutions and dense layers read.
template <typename Scalar>
bool PlaneExecutor<Scalar>::skips_ntk(const Run& run, std::size_t number) const {
  const Instruction& source = run.instructions[number];
  if (source.loads || !std::holds_alternative<InputNode>(node_of(source).operation)) return false;
  if (number + 1 == run.instructions.size()) return false;
  for (std::size_t i = number + 1; i < run.instructions.size(); ++i) {
    const auto& inputs = run.instructions[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), number) == inputs.end()) continue;
    const auto& affine = placed_[i].affine;
    if (!affine || affine->kind == Affine::Kind::circular) return false;
  }
  return true;
}

template <typename Scalar>
typename PlaneExecutor<Scalar>::Affine PlaneExecutor<Scalar>::affine_of(const AffineNode& node,
                                                                        NodeId input) const {
  using Kind = typename Affine::Kind;
  const Window3 window(node.window);
  const auto kind = [&] {
    if (window.padding == Padding::circular) return Kind::circular;
    if (window.is_single_position()) return Kind::single_position;
    const bool shifts = window.stride == Index3{1, 1, 1} && window.padding == Padding::same;
    return shifts ? Kind::shifted : Kind::strided;
  };
  return {.window = window,
          .left_front = window.front(geometry_.left_sizes[input]),
          .right_front = window.front(geometry_.right_sizes[input]),
          .scale = node.weight_variance / static_cast<double>(product(window.size)),
          .bias = node.bias_variance,
          .kind = kind()};
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute_offset(const PlaneStep& step, const PlaneOffsets& offsets,
                                           bool is_demanded) {
  const Run& run = step.run;
  place(run, offsets);
  const std::size_t last = run.instructions.size() - 1;
  if (placed_[last].empty()) return;
  stack_pairs(run);
  if (is_demanded && is_pool(step.target)) pool_.place(placed_[last].axis, placed_[last].layout);
  // An input with itself: at offset 0 its arrays are only being made (see apply_row()).
  if (!recording() || !placed_[last].is_diagonal) pack(run);
  for (const Stack& stack : stacks_) {
    choose_rows(run, stack);
    for (std::size_t i = 0; i <= last; ++i) {
      stop_.check();
      timer_.time(run.instructions[i].node, [&] {
        if (is_made_in_blocks(i))
          take_product(run, stack);
        else
          evaluate(run, i, stack);
      });
    }
    if (!is_demanded) continue;
    const Plane<Scalar> planes = placed_[last].planes;
    if (run.instructions[last].gaps != Gaps::zero) clear_guards(placed_[last].layout, stack.count, planes);
    timer_.time(step.target, [&] { put(step.target, placed_[last], stack, planes); });
  }
}

/// Cuts the tile's pairs into stacks whose planes fit into a slot.
template <typename Scalar>
void PlaneExecutor<Scalar>::stack_pairs(const Run& run) {
  Index length = 1;
  for (std::size_t i = 0; i < run.instructions.size(); ++i)
    if (!placed_[i].empty()) length = std::max(length, placed_[i].layout.length);
  // Two planes are not worth packing: alone, they are read where they lie.
  constexpr Index fewest = 3;
  const Index fitting = stacked_numbers / length;
  const Index most = stacks_pay_ && fitting >= fewest ? fitting : 1;
  if (most == stacked_) return;
  stacked_ = most;
  stacks_many_ = false;
  stacks_.clear();
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    const TilePair& members = tile_->pairs[static_cast<std::size_t>(pair)];
    const Index right = right_place(members);
    const Stack* open = stacks_.empty() ? nullptr : &stacks_.back();
    const bool joins = open != nullptr && open->count < most && members.same_input == open->same_input &&
                       members.left == open->left + open->count && right == open->right + open->count;
    if (joins)
      ++stacks_.back().count;
    else
      stacks_.push_back({members.left, right, pair, 1, members.same_input});
    stacks_many_ = stacks_many_ || joins;
  }
  if (!blocked_input_) return;
  placed_[*blocked_input_].planes = slot(run.instructions[*blocked_input_].slot);
  if (stacks_many_) return;
  for (Stack& stack : stacks_) stack.right = tile_->pairs[static_cast<std::size_t>(stack.first_pair)].right;
  std::stable_sort(stacks_.begin(), stacks_.end(), [](const Stack& a, const Stack& b) {
    return std::tuple(block_of(a), a.left) < std::tuple(block_of(b), b.left);
  });
}

/// Every node of a run is evaluated at one offset, which follows from the root's through the strides on the
/// way. Each is worked out from the root's: from instruction to instruction they would wait for each other.
template <typename Scalar>
void PlaneExecutor<Scalar>::place(const Run& run, const PlaneOffsets& offsets) {
  block_ = {-1, -1};
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    Placed& placed = placed_[i];
    const NodeId node = run.instructions[i].node;
    const OffsetMap& map = run_->maps[i];
    for (std::size_t k = 0; k < 3; ++k)
      placed.axis[k].lay_out(geometry_.left_sizes[node][k], geometry_.right_sizes[node][k], offsets[k],
                             map.stride[k], map.shift[k], run_->gap(i, k));
    // In place: copies by wide loads would wait for the narrow stores that made the original.
    std::construct_at(&placed.layout, placed.axis, run_->guard);
    placed.is_diagonal = placed.has_offset({0, 0, 0});
    placed.source = Placed::Source::packs;
    placed.place.fill({0, placed.layout.length});
    if (placed.affine && placed.affine->kind == Affine::Kind::strided && !run.instructions[i].inputs.empty())
      placed.windows = strided_windows(placed_[run.instructions[i].inputs[0]], placed);
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const InputStep& step) {
  const NodeId node = step.node;
  if (geometry_.demanded[node].empty()) return;
  const StoreLayout& layout = geometry_.layouts[node];
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    stop_.check();
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
    if (target.ntk != nullptr) std::fill_n(target.ntk, layout.size(), Scalar{0});
  }
}

template <typename Scalar>
void PlaneExecutor<Scalar>::execute(const PairStep& step) {
  const auto& node = std::get<PairNode>(program_.graph.nodes[step.node].operation);
  const NodeId input = program_.graph.nodes[step.node].inputs[0];
  if (recording()) record_pair_state(node, step.node);
  if (geometry_.demanded[step.node].empty()) return;
  if (const auto* stage = functional_stage(*node.stage)) return sum_up(*stage, step.node);
  const StoreLayout& out = geometry_.layouts[step.node];
  const Shape& left_shape = geometry_.shapes.left[input];
  const Shape& right_shape = geometry_.shapes.right[input];
  const Index rows = position_count(left_shape), columns = position_count(right_shape);
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    stop_.check();
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
                                .wanted = geometry_.demanded[step.node].entries(
                                    geometry_.left_sizes[step.node], geometry_.right_sizes[step.node]),
                                .stop = stop_};
    PairResult<Scalar> result{
        .nngp = {target.nngp, out.left_positions(), out.right_positions()},
        .ntk = {target.ntk, with_ntk_ ? out.left_positions() : 0, with_ntk_ ? out.right_positions() : 0},
        .scratch = matrices.scratch};
    name_layer(program_.graph.nodes[step.node], [&] { node.stage->apply(view, result); });
  }
}

/// A functional stage: its sums run over the planes themselves.
template <typename Scalar>
void PlaneExecutor<Scalar>::sum_up(const FunctionalStage& stage, NodeId node) {
  const NodeId input = program_.graph.nodes[node].inputs[0];
  const StoreLayout& layout = geometry_.layouts[input];
  const auto apply = [&](const PairSums<Scalar>& sums, Index pair) {
    const TilePair& members = tile_->pairs[static_cast<std::size_t>(pair)];
    const auto values =
        stage.apply(sums,
                    FeaturePair<Scalar>{tile_->left[static_cast<std::size_t>(members.left)]->extra(node),
                                        tile_->right[static_cast<std::size_t>(members.right)]->extra(node),
                                        geometry_.shapes.left[input], geometry_.shapes.right[input]},
                    matrices_.data());
    const Plane<Scalar> target = store(node, pair);
    *target.nngp = static_cast<Scalar>(values.nngp);
    if (target.ntk != nullptr) *target.ntk = static_cast<Scalar>(values.ntk);
  };
  for (Index pair = 0; pair < static_cast<Index>(tile_->pairs.size()); ++pair) {
    stop_.check();
    const Plane<Scalar> kept = store(input, pair);
    if (layout.is_matrix())
      apply(MatrixSums<Scalar>(kept.nngp, kept.ntk, layout.left_positions(), layout.right_positions()), pair);
    else
      apply(PlaneSums<Scalar>(geometry_.left_sizes[input], geometry_.right_sizes[input],
                              geometry_.demanded[input], layout, kept),
            pair);
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
  name_layer(program_.graph.nodes[id], [&] {
    check_variances(variances, positions);
    node.stage->prepare(SelfView<Scalar>{nngp, shape, stop_}, recorded_->extra(id));
  });
}

template class PlaneExecutor<float>;
template class PlaneExecutor<double>;

}  // namespace widelimit
