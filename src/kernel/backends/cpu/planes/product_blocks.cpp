#include "kernel/backends/cpu/planes/product_blocks.hpp"

#include <algorithm>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

/// The place of the product of a left and a right input of a block.
template <typename Scalar>
Scalar* ProductBlocks<Scalar>::place(Index left, Index right) const {
  const Index number = left % block_side * std::min(work_.size.right, block_side) + right % block_side;
  return products_ + number * work_.pair.planes.slot() + work_.pair.planes.front;
}

template <typename Scalar>
Plane<Scalar> ProductBlocks<Scalar>::product(const PlacedInstruction<Scalar>& input, const Stack& stack) {
  const std::array<Index, 2> block{stack.left / block_side, stack.right / block_side};
  if (block != block_) {
    block_ = block;
    multiply(input);
  }
  return {place(stack.left, stack.right), nullptr};
}

/// Collects the features of the block's inputs on one side, and returns the number of these inputs.
template <typename Scalar>
std::size_t ProductBlocks<Scalar>::find_rows(const PlacedInstruction<Scalar>& input, Side side,
                                             Rows& rows) const {
  const auto& inputs = side == Side::left ? work_.tile().left : work_.tile().right;
  const Index begin = block_[static_cast<std::size_t>(side)] * block_side,
              count = std::min(block_side, static_cast<Index>(inputs.size()) - begin);
  const Index arrays = input.arrays->count();
  rows.resize(static_cast<std::size_t>(count * arrays));
  for (Index i = 0; i < count; ++i) input.arrays->find_rows(side, begin + i, rows.data() + i * arrays);
  return static_cast<std::size_t>(count);
}

template <typename Scalar>
void ProductBlocks<Scalar>::multiply(const PlacedInstruction<Scalar>& input) {
  if (input.at().empty()) return;
  const auto channels = static_cast<std::size_t>(input.arrays->count());
  const std::size_t lefts = find_rows(input, Side::left, left_),
                    rights = find_rows(input, Side::right, right_);
  std::array<Scalar*, block_side * block_side> targets;
  for (std::size_t a = 0; a < lefts; ++a)
    for (std::size_t b = 0; b < rights; ++b)
      targets[a * rights + b] = place(static_cast<Index>(a), static_cast<Index>(b));
  numerics::linear_rows<Scalar>().product_sums(left_.data(), lefts, right_.data(), rights, channels,
                                               Scalar{1} / static_cast<Scalar>(channels), targets.data(),
                                               input.array_row_size(1));
  for (std::size_t n = 0; n < lefts * rights; ++n) input.clear_behind_rows({targets[n], nullptr});
}

template <typename Scalar>
std::optional<std::size_t> blocked_input(const TileWork<Scalar>& work,
                                         const std::vector<PlacedInstruction<Scalar>>& placed) {
  std::optional<std::size_t> result;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const Instruction& instruction = *placed[i].instruction;
    const bool multiplies =
        !instruction.loads && multiplies_features(work.pair.node(instruction.node).operation);
    if (!multiplies) continue;
    // An input that is the root itself is written where the root's target expects it.
    const bool alone = !result && i + 1 < placed.size();
    if (!alone || work.recording() || (work.pair.with_ntk() && !placed[i].skips_ntk)) return {};
    result = i;
  }
  return result;
}

template class ProductBlocks<float>;
template class ProductBlocks<double>;
template std::optional<std::size_t> blocked_input(const TileWork<float>&,
                                                  const std::vector<PlacedInstruction<float>>&);
template std::optional<std::size_t> blocked_input(const TileWork<double>&,
                                                  const std::vector<PlacedInstruction<double>>&);

}  // namespace widelimit
