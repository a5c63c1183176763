#include "store/pair_recomputation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "widelimit/error.hpp"

namespace widelimit::store {

PairsOfTiles random_pairs(const TileGrid& grid, Index count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](Index size) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(size));
  };
  PairsOfTiles pairs;
  for (Index k = 0; k < count; ++k) {
    Index i = below(grid.rows()), j = below(grid.columns());
    if (grid.is_symmetric() && j < i) std::swap(i, j);
    pairs[{i / grid.side(), j / grid.side()}].emplace_back(i, j);
  }
  // Neighbours may come from one product of vectors.
  for (auto& [tile, of_tile] : pairs) std::sort(of_tile.begin(), of_tile.end());
  return pairs;
}

template <typename Scalar>
std::vector<StoreMismatch> PairRecomputation<Scalar>::run(const PairsOfTiles& pairs) {
  const TileGrid grid = facts_.grid();
  for (const auto& [place, of_tile] : pairs) {
    const TileIndex tile{place.first, place.second};
    auto stored = files_.read(tile);
    if (!stored.damaged.empty())
      throw DataError(fmt::format("{}: damaged: its checksum or length is wrong", stored.damaged.front()));
    for (const auto& [i, j] : of_tile)
      compare(stored.kernels, i, j, i - grid.rows_of(tile).begin, j - grid.columns_of(tile).begin);
  }
  return std::move(mismatches_);
}

template <typename Scalar>
void PairRecomputation<Scalar>::compare(GramResult<Scalar>& stored, Index i, Index j, Index row,
                                        Index column) {
  const auto& arrays = facts_.arrays();
  const auto number = [&](const std::string& array) {
    return TileFiles<Scalar>::array_of(stored, array)(row, column);
  };
  if (std::isnan(number(arrays.front()))) return;
  const std::vector<Scalar> computed = source_.pair(i, j);
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const Scalar there = number(arrays[a]), here = computed[a];
    // Standard errors of a single sample are NaN.
    if ((std::isnan(there) && std::isnan(here)) || std::memcmp(&there, &here, sizeof there) == 0) continue;
    mismatches_.push_back({arrays[a], i, j, static_cast<double>(there), static_cast<double>(here)});
  }
}

template class PairRecomputation<float>;
template class PairRecomputation<double>;

}  // namespace widelimit::store
