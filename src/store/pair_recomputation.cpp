#include "store/pair_recomputation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "widelimit/error.hpp"

namespace widelimit::store {

template <typename Scalar>
std::vector<StoreMismatch> PairRecomputation<Scalar>::run(PairSample& sample) {
  const TileGrid grid = facts_.grid();
  for (Index t = 0; t < grid.count(); ++t) {
    if (stop_.stop_requested())
      throw Cancelled(fmt::format("store: stopped on request after {} pairs, which are the same", compared_));
    auto pairs = sample.of_next_tile();
    if (pairs.empty()) continue;
    const TileIndex tile = grid.tile(t);
    auto stored = files_.read(tile);
    if (!stored.damaged.empty())
      throw DataError(
          fmt::format("{}: damaged: {}", stored.damaged.front().file, stored.damaged.front().what));
    // Pairs that one product of vectors computes follow each other.
    source_.sort_by_block(pairs);
    for (const auto& [i, j] : pairs)
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
  // A pair that has not been computed.
  if (std::isnan(number(arrays.front()))) return;
  ++compared_;
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
