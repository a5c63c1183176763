#include "kernel/backends/cpu/planes/stacks.hpp"

#include <algorithm>
#include <tuple>

#include "kernel/backends/cpu/planes/plane_sizes.hpp"

namespace widelimit {
namespace {

/// True if a pair continues the diagonal of a stack.
bool continues(const Stack& stack, const TilePair& pair, Index right_place) {
  return pair.same_input == stack.same_input && pair.left == stack.left + stack.count &&
         right_place == stack.right_place + stack.count;
}

}  // namespace

Index planes_a_stack(Index plane_length) {
  // Two planes are not worth packing. Alone, they are read in place.
  constexpr Index fewest = 3;
  const Index fitting = stacked_numbers / plane_length;
  return fitting >= fewest ? fitting : 1;
}

void PairStacks::begin_tile(const std::vector<TilePair>& pairs, Index right_inputs) {
  pairs_ = &pairs;
  right_inputs_ = right_inputs;
  right_places_ = most_ = 0;
  for (const TilePair& pair : pairs) right_places_ = std::max(right_places_, right_place(pair) + 1);
}

Index PairStacks::right_place(const TilePair& pair) const {
  // The right input's number, or that plus the number of right inputs, so that the place is never less than the left
  // input's: along a wrapped diagonal both grow by one.
  return pair.left + ((pair.right - pair.left) % right_inputs_ + right_inputs_) % right_inputs_;
}

void PairStacks::cut(Index most) {
  if (most == most_) return;
  most_ = most;
  has_many_ = false;
  stacks_.clear();
  stacks_.reserve(pairs_->size());
  for (Index number = 0; number < static_cast<Index>(pairs_->size()); ++number) {
    const TilePair& pair = (*pairs_)[static_cast<std::size_t>(number)];
    const Index place = right_place(pair);
    const bool joins =
        !stacks_.empty() && stacks_.back().count < most && continues(stacks_.back(), pair, place);
    if (joins)
      ++stacks_.back().count;
    else
      stacks_.push_back({pair.left, pair.right, place, number, 1, pair.same_input});
    has_many_ = has_many_ || joins;
  }
}

void PairStacks::cut_by_blocks(Index most, Index block_side) {
  if (most == most_) return;
  cut(most);
  if (has_many_) return;
  const auto key = [block_side](const Stack& stack) {
    return std::tuple(stack.left / block_side, stack.right / block_side, stack.left);
  };
  std::stable_sort(stacks_.begin(), stacks_.end(),
                   [&](const Stack& a, const Stack& b) { return key(a) < key(b); });
}

}  // namespace widelimit
