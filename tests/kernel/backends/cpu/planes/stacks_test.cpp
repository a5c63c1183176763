// Stacks of pairs, against a list of the pairs.
#include "kernel/backends/cpu/planes/stacks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kernel/backends/cpu/planes/plane_sizes.hpp"

using namespace widelimit;

namespace {

/// The pairs of two batches, or of one batch with itself (mirrored ones left out), in the order of tiles.
std::vector<TilePair> tile_pairs(Index left, Index right, bool one_batch) {
  std::vector<TilePair> pairs;
  for_each_pair(left, right, [&](Index i, Index j) {
    if (!one_batch || i <= j) pairs.push_back({i, j, one_batch && i == j});
  });
  return pairs;
}

/// Every pair is in one stack; a stack is a piece of a diagonal, neighbours of which are packed side by side.
void check_stacks(const PairStacks& stacks, const std::vector<TilePair>& pairs, Index rights, Index most) {
  std::set<std::pair<Index, Index>> seen;
  for (const Stack& stack : stacks) {
    CHECK(stack.count >= 1);
    CHECK(stack.count <= most);
    for (Index n = 0; n < stack.count; ++n) {
      const TilePair& pair = pairs[static_cast<std::size_t>(stack.first_pair + n)];
      CHECK(pair.left == stack.left + n);
      CHECK(pair.right == (stack.right_place + n) % rights);
      CHECK(pair.same_input == stack.same_input);
      CHECK(stack.right_place + n < stacks.right_places());
      CHECK(seen.insert({pair.left, pair.right}).second);
    }
  }
  CHECK(seen.size() == pairs.size());
}

}  // namespace

TEST_CASE("all pairs of two sides, each once") {
  std::set<std::pair<Index, Index>> seen;
  for_each_pair(4, 6, [&](Index i, Index j) { CHECK(seen.insert({i, j}).second); });
  CHECK(seen.size() == 24);
}

TEST_CASE("stacks hold every pair once, along diagonals") {
  PairStacks stacks;  // one for all tiles: nothing stays of the last
  for (const auto& [left, right] : {std::pair<Index, Index>{5, 5}, {3, 7}, {7, 3}, {1, 1}, {4, 1}})
    for (const bool one_batch : {false, true}) {
      if (one_batch && left != right) continue;
      const auto pairs = tile_pairs(left, right, one_batch);
      stacks.begin_tile(pairs, right);
      for (const Index most : {1, 3, 100}) {
        stacks.cut(most);
        check_stacks(stacks, pairs, right, most);
        CHECK(stacks.has_many() ==
              std::any_of(stacks.begin(), stacks.end(), [](const Stack& stack) { return stack.count > 1; }));
      }
    }
}

TEST_CASE("pairs that stand alone follow each other block by block") {
  constexpr Index side = 2;
  const auto pairs = tile_pairs(5, 7, false);
  PairStacks stacks;
  stacks.begin_tile(pairs, 7);
  stacks.cut_by_blocks(1, side);
  check_stacks(stacks, pairs, 7, 1);
  std::set<std::pair<Index, Index>> finished;
  std::pair<Index, Index> current{-1, -1};
  for (const Stack& stack : stacks) {
    CHECK(stack.right == pairs[static_cast<std::size_t>(stack.first_pair)].right);
    const std::pair<Index, Index> block{stack.left / side, stack.right / side};
    if (block == current) continue;
    CHECK(!finished.contains(block));
    finished.insert(current);
    current = block;
  }
}

TEST_CASE("a stack fits into its slot, and two planes are no stack") {
  for (Index length = 1; length < 2000; ++length) {
    const Index planes = planes_a_stack(length);
    CHECK((planes == 1 || planes * length <= stacked_numbers));
    CHECK(planes != 2);
    if (3 * length <= stacked_numbers) CHECK(planes == stacked_numbers / length);
  }
}
