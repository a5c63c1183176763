// The instructions of PlaneExecutor: what happens to one plane of one pair.
#include <algorithm>

#include "kernel/planes/plane_executor.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "kernel/variance_checks.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

using numerics::linear_rows;

std::size_t plane_size(const PlaneLayout& layout) { return static_cast<std::size_t>(layout.length); }

}  // namespace

template <typename Scalar>
void PlaneExecutor<Scalar>::evaluate(const Run& run, std::size_t number, const Stack& stack) {
  const Instruction& instruction = run.instructions[number];
  const Operation& operation = node_of(instruction).operation;
  const Plane<Scalar> target = placed_[number].planes;
  // A row stage records its variances although its result may not be demanded; only where it is evaluated,
  // though.
  const bool records = std::holds_alternative<RowNode>(operation) && !instruction.loads;
  if (recording() && geometry_.demanded[instruction.node].empty() && !records) return;
  if (placed_[number].empty()) return;
  if (instruction.loads) {
    load(instruction.node, placed_[number], stack.first_pair, stack.count, target);
  } else if (std::holds_alternative<InputNode>(operation)) {
    if (recording() && placed_[number].is_diagonal) pack_planes(instruction.node, placed_[number], false);
    input_products(number, stack, target);
  } else if (std::holds_alternative<AffineNode>(operation)) {
    affine(run, number, stack, target);
  } else if (std::holds_alternative<LocalAffineNode>(operation)) {
    for (Index n = 0; n < stack.count; ++n)
      local_affine(run, number, stack.first_pair + n, target + n * placed_[number].layout.length);
  } else if (const auto* row = std::get_if<RowNode>(&operation)) {
    name_layer(node_of(instruction), [&] { apply_row(run, number, stack, *row->stage, target); });
  } else if (const auto* sum = std::get_if<SumNode>(&operation)) {
    add_planes(run, number, stack, *sum, target);
  } else {
    multiply_planes(run, number, stack, std::get<ProductNode>(operation), target);
  }
}

template <typename Scalar>
std::size_t PlaneExecutor<Scalar>::row_size(std::size_t number, const Stack& stack) const {
  return static_cast<std::size_t>(padded(stack.count * placed_[number].layout.length));
}

template <typename Scalar>
void PlaneExecutor<Scalar>::clear_behind_rows(const Placed& placed, const Plane<Scalar>& target) const {
  if (placed.has_guarded_arrays()) return;
  const Index end = placed.end_of_rows();
  fill_plane(target + end, static_cast<std::size_t>(padded(placed.layout.length) - end), Scalar{0},
             Scalar{0});
}

template <typename Scalar>
numerics::DualRow<Scalar> PlaneExecutor<Scalar>::dual_row(std::size_t number, const Stack& stack,
                                                          const Plane<Scalar>& planes) const {
  const Placed& placed = placed_[number];
  const std::size_t size = placed.has_guarded_arrays()
                               ? row_size(number, stack)
                               : static_cast<std::size_t>(padded(placed.end_of_rows()));
  return {planes.nngp, planes.ntk, placed.left_row.data(), placed.right_row.data(), size};
}

template <typename Scalar>
void PlaneExecutor<Scalar>::input_products(std::size_t number, const Stack& stack,
                                           const Plane<Scalar>& planes) {
  const Plane<Scalar> target{planes.nngp, placed_[number].skips_ntk ? nullptr : planes.ntk};
  const auto row = dual_row(number, stack, target);
  const auto channels = static_cast<std::size_t>(placed_[number].arrays);
  linear_rows<Scalar>().product_sum(row.left, row.right, channels, Scalar{1} / static_cast<Scalar>(channels),
                                    row.nngp, row.size);
  if (row.ntk != nullptr) std::fill_n(row.ntk, row.size, Scalar{0});
  clear_behind_rows(placed_[number], target);
}

/// Planes that are not stacked load more numbers of their inputs than fit the first-level cache, for every
/// pair. The products of a block of inputs of either side with each other share these loads.
///
/// Only where the inputs' NTK, which is zero, need not be written.
template <typename Scalar>
std::optional<std::size_t> PlaneExecutor<Scalar>::blocked_input(const Run& run) const {
  std::optional<std::size_t> result;
  for (std::size_t i = 0; i < run.instructions.size(); ++i) {
    const bool multiplies = std::holds_alternative<InputNode>(node_of(run.instructions[i]).operation) &&
                            !run.instructions[i].loads;
    if (!multiplies) continue;
    const bool alone = !result && i + 1 < run.instructions.size();
    if (!alone || recording() || (with_ntk_ && !placed_[i].skips_ntk)) return {};
    result = i;
  }
  return result;
}

template <typename Scalar>
std::array<Index, 2> PlaneExecutor<Scalar>::block_of(const Stack& stack) {
  return {stack.left / block_side, stack.right / block_side};
}

/// Where the product of a left and a right input of a block lies.
template <typename Scalar>
Scalar* PlaneExecutor<Scalar>::block_product(Index left, Index right) {
  const Index number = left % block_side * std::min(side_, block_side) + right % block_side;
  return products_.data() + number * (geometry_.plane_front + geometry_.plane_capacity) +
         geometry_.plane_front;
}

/// Makes the product of a stack's pair that of the run.
template <typename Scalar>
void PlaneExecutor<Scalar>::take_product(const Run& run, const Stack& stack) {
  if (block_of(stack) != block_) {
    multiply_block(run, stack);
    block_ = block_of(stack);
  }
  placed_[*blocked_input_].planes = {block_product(stack.left, stack.right), nullptr};
}

/// All products of the block of a stack of one pair.
template <typename Scalar>
void PlaneExecutor<Scalar>::multiply_block(const Run& run, const Stack& stack) {
  const std::size_t number = *blocked_input_;
  Placed& placed = placed_[number];
  if (placed.empty()) return;
  const NodeId node = run.instructions[number].node;
  const auto channels = static_cast<std::size_t>(placed.arrays);
  const auto [left_block, right_block] = block_of(stack);
  const auto side_rows = [&](std::size_t side, Index block, std::size_t inputs,
                             std::vector<const Scalar*>& rows) {
    const Index begin = block * block_side, end = std::min(begin + block_side, static_cast<Index>(inputs));
    rows.resize(static_cast<std::size_t>(end - begin) * channels);
    for (Index input = begin; input < end; ++input)
      find_rows(node, placed, side, input, input,
                rows.data() + static_cast<std::size_t>(input - begin) * channels);
    return static_cast<std::size_t>(end - begin);
  };
  const std::size_t lefts = side_rows(0, left_block, tile_->left.size(), block_left_),
                    rights = side_rows(1, right_block, tile_->right.size(), block_right_);
  std::array<Scalar*, block_side * block_side> targets;
  for (std::size_t a = 0; a < lefts; ++a)
    for (std::size_t b = 0; b < rights; ++b)
      targets[a * rights + b] = block_product(static_cast<Index>(a), static_cast<Index>(b));
  const auto row = dual_row(number, stack, {targets[0], nullptr});
  linear_rows<Scalar>().product_sums(block_left_.data(), lefts, block_right_.data(), rights, channels,
                                     Scalar{1} / static_cast<Scalar>(channels), targets.data(), row.size);
  for (std::size_t n = 0; n < lefts * rights; ++n) clear_behind_rows(placed, {targets[n], nullptr});
}

/// A convolution of nothing.
template <typename Scalar>
void PlaneExecutor<Scalar>::fill_bias(const Affine& affine, std::size_t size, const Plane<Scalar>& target) {
  fill_plane(target, size, static_cast<Scalar>(affine.bias), static_cast<Scalar>(affine.bias));
}

template <typename Scalar>
void PlaneExecutor<Scalar>::affine(const Run& run, std::size_t number, const Stack& stack,
                                   const Plane<Scalar>& target) {
  using Kind = typename Affine::Kind;
  const Placed& to = placed_[number];
  const PlaneLayout& layout = to.layout;
  const Affine& affine = *to.affine;
  if (affine.kind == Kind::circular) {
    for (Index n = 0; n < stack.count; ++n)
      circular_affine(run, number, stack.first_pair + n, target + n * layout.length);
    return;
  }
  const std::size_t input = run.instructions[number].inputs[0];
  const Placed& from = placed_[input];
  Plane<Scalar> source = from.planes;
  if (from.skips_ntk) source.ntk = nullptr;
  if (affine.kind == Kind::single_position)
    return dense_plane(affine.scale, affine.bias, source, row_size(number, stack), target);
  if (from.empty()) return fill_bias(affine, static_cast<std::size_t>(stack.count * layout.length), target);
  if (run.instructions[input].gaps != Gaps::zero) clear_guards(from.layout, stack.count, source);
  if (affine.kind == Kind::shifted)
    convolve_shifted(affine.window, affine.left_front, layout, stack.count, affine.scale, affine.bias, source,
                     target, {scratch_[0].nngp, scratch_[1].nngp});
  else
    convolve_strided(to.windows, {stack.count, from.layout.length, layout.length}, source, target);
}

/// The windows of any convolution but a circular one, from one placed plane to another with its gaps: those
/// become finite numbers.
template <typename Scalar>
numerics::PlaneWindows PlaneExecutor<Scalar>::strided_windows(const Placed& from, const Placed& to) {
  const Affine& affine = *to.affine;
  const PlaneLayout &source = from.layout, &target = to.layout;
  numerics::PlaneWindows windows{.first = {},
                                 .stride = affine.window.stride,
                                 .taps = affine.window.size,
                                 .source_extent = source.extent,
                                 .target_extent = {target.extent[0] + target.guard[0],
                                                   target.extent[1] + target.guard[1], target.stride[1]},
                                 .source_step = {source.stride[0], source.stride[1]},
                                 .target_step = {target.stride[0], target.stride[1]},
                                 .source_guard = source.guard[2] > 0 ? source.stride[1] : 0,
                                 .scale = affine.scale,
                                 .bias = affine.bias};
  for (std::size_t k = 0; k < 3; ++k)
    windows.first[k] =
        windows.stride[k] * to.axis[k].origin[0] - affine.left_front[k] - from.axis[k].origin[0];
  return windows;
}

template <typename Scalar>
void PlaneExecutor<Scalar>::local_affine(const Run& run, std::size_t number, Index pair,
                                         const Plane<Scalar>& target) {
  const Placed& to = placed_[number];
  const Affine& affine = *to.affine;
  if (!to.is_diagonal) return fill_plane(target, plane_size(to.layout), Scalar{0}, Scalar{0});
  if (affine.kind == Affine::Kind::circular) return circular_affine(run, number, pair, target);
  const NodeId input = node_of(run.instructions[number]).inputs[0];
  Index3 offset;
  for (std::size_t k = 0; k < 3; ++k) offset[k] = affine.left_front[k] - affine.right_front[k];
  Placed from;
  for (std::size_t k = 0; k < 3; ++k)
    from.axis[k].lay_out(geometry_.left_sizes[input][k], geometry_.right_sizes[input][k], {{offset[k], 0}, 1},
                         1, 0, 0);
  from.layout = PlaneLayout(from.axis, Index3{0, 0, 0});
  if (from.empty()) return fill_bias(affine, plane_size(to.layout), target);
  const Plane<Scalar> source = scratch_[1];
  load(input, from, pair, 1, source);
  convolve_strided(strided_windows(from, to), {1, from.layout.length, to.layout.length}, source, target);
}

/// Gathers entry by entry from the kept input: wrap-around mixes planes that lie a whole axis apart.
template <typename Scalar>
void PlaneExecutor<Scalar>::circular_affine(const Run& run, std::size_t number, Index pair,
                                            const Plane<Scalar>& target) {
  const Placed& to = placed_[number];
  const NodeId input = node_of(run.instructions[number]).inputs[0];
  const StoreLayout& layout = geometry_.layouts[input];
  const Plane<Scalar> source = store(input, pair);
  const Window3& window = to.affine->window;
  const Index3 left = geometry_.left_sizes[input], right = geometry_.right_sizes[input];
  const Index3 &left_front = to.affine->left_front, &right_front = to.affine->right_front;
  const auto wrapped = [&](const Index3& position, const Index3& tap, const Index3& front,
                           const Index3& size) {
    Index3 result;
    for (std::size_t k = 0; k < 3; ++k)
      result[k] = ((window.stride[k] * position[k] + tap[k] - front[k]) % size[k] + size[k]) % size[k];
    return result;
  };
  const auto scale = static_cast<Scalar>(to.affine->scale), bias = static_cast<Scalar>(to.affine->bias);
  const Box box(to.axis, {0, 0, 0});
  for_each_row(to.layout.extent, [&](Index x, Index y) {
    for (Index z = 0; z < to.layout.extent[2]; ++z) {
      const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
      const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
      Scalar nngp = 0, ntk = 0;
      for (Index i = 0; i < window.size[0]; ++i)
        for (Index j = 0; j < window.size[1]; ++j)
          for (Index k = 0; k < window.size[2]; ++k) {
            const Index entry = layout.entry(wrapped(a, {i, j, k}, left_front, left),
                                             wrapped(b, {i, j, k}, right_front, right));
            nngp += source.nngp[entry];
            if (source.ntk != nullptr) ntk += source.ntk[entry];
          }
      const Index place = to.layout.at(x, y) + z;
      target.nngp[place] = scale * nngp + bias;
      if (with_ntk_) target.ntk[place] = target.nngp[place] + scale * ntk;
    }
  });
}

template <typename Scalar>
void PlaneExecutor<Scalar>::apply_row(const Run& run, std::size_t number, const Stack& stack,
                                      const RowStage& stage, const Plane<Scalar>& target) {
  const Placed& placed = placed_[number];
  const Plane<Scalar> source = placed_[run.instructions[number].inputs[0]].planes;
  if (recording()) {
    const NodeId node = run.instructions[number].node;
    if (placed.is_diagonal) record_variances(run, number, stage, source);
    if (geometry_.demanded[node].empty()) return;
    if (placed.is_diagonal) pack_planes(node, placed, false);
  }
  if (source.nngp != target.nngp) copy_plane(source, row_size(number, stack), target);
  const auto row = dual_row(number, stack, target);
  if (stack.same_input && placed.is_diagonal)
    stage.apply_self(row);
  else
    stage.apply(row);
  clear_behind_rows(placed, target);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::record_variances(const Run& run, std::size_t number, const RowStage& stage,
                                             const Plane<Scalar>& source) {
  const Placed& placed = placed_[number];
  const NodeId node = run.instructions[number].node;
  const Index positions = product(placed.layout.extent);
  const Index3& extent = placed.layout.extent;
  Scalar* variances = scratch_[0].nngp;
  for_each_row(extent, [&](Index x, Index y) {
    std::copy_n(source.nngp + placed.layout.at(x, y), extent[2], variances + (x * extent[1] + y) * extent[2]);
  });
  std::vector<Scalar> numbers(static_cast<std::size_t>(placed.arrays * positions));
  std::vector<Scalar*> arrays;
  for (Index k = 0; k < placed.arrays; ++k) arrays.push_back(numbers.data() + k * positions);
  check_variances(variances, positions);
  stage.prepare(variances, static_cast<std::size_t>(positions), arrays.data());
  const PlaneLayout& kept = recorded_->layout().planes[node];
  for (Index k = 0; k < placed.arrays; ++k)
    for_each_row(extent, [&](Index x, Index y) {
      std::copy_n(arrays[static_cast<std::size_t>(k)] + (x * extent[1] + y) * extent[2], extent[2],
                  recorded_->array(node, k) + kept.at(x, y));
    });
}

template <typename Scalar>
void PlaneExecutor<Scalar>::add_planes(const Run& run, std::size_t number, const Stack& stack,
                                       const SumNode& node, const Plane<Scalar>& target) {
  const auto& inputs = run.instructions[number].inputs;
  sum_planes([&](std::size_t i) { return placed_[inputs[i]].planes; }, node.factors, row_size(number, stack),
             target);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::multiply_planes(const Run& run, std::size_t number, const Stack& stack,
                                            const ProductNode& node, const Plane<Scalar>& target) {
  const std::size_t size = row_size(number, stack);
  fill_plane(target, size, static_cast<Scalar>(node.factor), Scalar{0});
  for (const std::size_t input : run.instructions[number].inputs)
    multiply_plane(placed_[input].planes, size, target);
}

// The other members are reached from here, or defined and instantiated in the other files of the class.
template void PlaneExecutor<float>::evaluate(const Run&, std::size_t, const Stack&);
template void PlaneExecutor<double>::evaluate(const Run&, std::size_t, const Stack&);
template std::optional<std::size_t> PlaneExecutor<float>::blocked_input(const Run&) const;
template std::optional<std::size_t> PlaneExecutor<double>::blocked_input(const Run&) const;
template std::array<Index, 2> PlaneExecutor<float>::block_of(const Stack&);
template std::array<Index, 2> PlaneExecutor<double>::block_of(const Stack&);
template numerics::PlaneWindows PlaneExecutor<float>::strided_windows(const Placed&, const Placed&);
template numerics::PlaneWindows PlaneExecutor<double>::strided_windows(const Placed&, const Placed&);
template void PlaneExecutor<float>::take_product(const Run&, const Stack&);
template void PlaneExecutor<double>::take_product(const Run&, const Stack&);

}  // namespace widelimit
