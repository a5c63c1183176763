// Samples of pairs: different ones, of every tile, all where no fewer are asked for, each as likely as the others.
#include "store/pair_sample.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace widelimit::store {
namespace {

std::set<std::pair<Index, Index>> sample(const TileGrid& grid, Index count, std::uint64_t seed) {
  PairSample pairs(grid, count, seed);
  std::set<std::pair<Index, Index>> all;
  for (Index t = 0; t < grid.count(); ++t) {
    const InputRange rows = grid.rows_of(grid.tile(t)), columns = grid.columns_of(grid.tile(t));
    for (const auto& [i, j] : pairs.of_next_tile()) {
      CHECK(all.emplace(i, j).second);
      CHECK((i >= rows.begin && i < rows.end && j >= columns.begin && j < columns.end));
      CHECK((!grid.is_symmetric() || i <= j));
    }
  }
  return all;
}

TEST_CASE("samples of pairs have as many different ones as are asked for, or all") {
  for (const TileGrid& grid :
       {TileGrid(10, 10, 4, true), TileGrid(9, 5, 4, false), TileGrid(200, 200, 64, true)})
    for (const Index count : {Index{1}, Index{7}, Index{44}, Index{45}, Index{54}, Index{55},
                              grid.pairs() - 1, grid.pairs(), grid.pairs() + 1, 1000 * grid.pairs()})
      for (const std::uint64_t seed : {0U, 1U})
        CHECK(static_cast<Index>(sample(grid, count, seed).size()) == std::min(count, grid.pairs()));
}

TEST_CASE("samples of pairs: each pair is as likely as the others, drawn in both ways") {
  for (const auto& [grid, count] :
       {std::pair(TileGrid(6, 6, 4, true), 7), std::pair(TileGrid(16, 16, 6, true), 1)}) {
    std::map<std::pair<Index, Index>, int> counts;
    constexpr int draws = 4000;
    for (std::uint64_t seed = 0; seed < draws; ++seed)
      for (const auto& pair : sample(grid, count, seed)) ++counts[pair];
    const double mean = static_cast<double>(draws * count) / static_cast<double>(grid.pairs());
    double chi_squared = 0;
    for (Index i = 0; i < grid.rows(); ++i)
      for (Index j = i; j < grid.columns(); ++j) chi_squared += std::pow(counts[{i, j}] - mean, 2) / mean;
    const auto freedom = static_cast<double>(grid.pairs() - 1);
    CHECK(chi_squared < freedom + 5 * std::sqrt(2 * freedom));
  }
}

}  // namespace
}  // namespace widelimit::store
