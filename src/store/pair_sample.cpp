#include "store/pair_sample.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace widelimit::store {
namespace {

Index below(std::mt19937_64& random, Index size) {
  return static_cast<Index>(random() % static_cast<std::uint64_t>(size));
}

/// `count` different numbers below `size`, from the largest to the smallest (R. Floyd, Comm. ACM 30, 754, 1987).
std::vector<Index> different_numbers(std::mt19937_64& random, Index size, Index count) {
  std::unordered_set<Index> chosen;
  for (Index last = size - count; last < size; ++last)
    if (!chosen.insert(below(random, last + 1)).second) chosen.insert(last);
  std::vector<Index> numbers(chosen.begin(), chosen.end());
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

}  // namespace

PairSample::PairSample(const TileGrid& grid, Index count, std::uint64_t seed)
    : grid_{grid},
      random_{seed},
      wanted_{std::min(count, grid.pairs())},
      is_sparse_{wanted_ < grid.pairs() / 64} {
  if (is_sparse_) numbers_ = different_numbers(random_, grid.pairs(), wanted_);
}

std::vector<Index> PairSample::taken_of(Index pairs) {
  std::vector<Index> taken;
  if (is_sparse_) {
    for (; !numbers_.empty() && numbers_.back() < passed_ + pairs; numbers_.pop_back())
      taken.push_back(numbers_.back() - passed_);
    return taken;
  }
  // Each with the probability that the rest leaves it (D. Knuth, The Art of Computer Programming, 3.4.2, algorithm S).
  Index left = grid_.pairs() - passed_;
  for (Index k = 0; k < pairs; ++k, --left)
    if (below(random_, left) < wanted_) {
      taken.push_back(k);
      --wanted_;
    }
  return taken;
}

std::vector<std::pair<Index, Index>> PairSample::of_next_tile() {
  const TileIndex tile = grid_.tile(tile_++);
  const Index pairs = grid_.pairs(tile);
  const InputRange rows = grid_.rows_of(tile), columns = grid_.columns_of(tile);
  const bool is_triangle = grid_.is_symmetric() && tile.row == tile.column;
  std::vector<std::pair<Index, Index>> chosen;
  Index row = rows.begin, before = 0;  // The current row, and the pairs of the rows above it.
  const auto in_row = [&] { return is_triangle ? columns.end - row : columns.size(); };
  for (const Index number : taken_of(pairs)) {
    while (number >= before + in_row()) before += in_row(), ++row;
    chosen.emplace_back(row, (is_triangle ? row : columns.begin) + number - before);
  }
  passed_ += pairs;
  return chosen;
}

}  // namespace widelimit::store
