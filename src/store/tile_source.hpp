#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/store_facts.hpp"
#include "store/tile_files.hpp"
#include "store/tile_parts.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit::store {

/// The network and the inputs of a store; no second batch if it is symmetric.
template <typename Scalar>
struct StoreInputs {
  Network network;
  Inputs<Scalar> x1;
  std::optional<Inputs<Scalar>> x2;
};

/// Computes the tiles of a store: those of every growth step from the inputs that there were then.
template <typename Scalar>
class TileSource {
 public:
  /// Inputs and facts must outlive it.
  TileSource(const StoreInputs<Scalar>& inputs, const StoreFacts& facts, GramOptions options)
      : inputs_{inputs}, facts_{facts}, options_{std::move(options)}, tiles_of_step_(facts.steps().size()) {}

  /// Fills in the pairs of a tile that are not numbers. False if there are none.
  bool complete(TileIndex tile, GramResult<Scalar>& kernels) {
    bool computed = false;
    const TileGrid grid = facts_.grid();
    const Index row = grid.rows_of(tile).begin, column = grid.columns_of(tile).begin;
    const bool mirrored = grid.is_symmetric() && tile.row == tile.column;
    for (std::size_t s = 0; s < facts_.steps().size(); ++s) {
      const GrowthStep step = growth_step(facts_.steps(), s);
      if (!is_missing(grid, tile, step, kernels)) continue;
      computed = true;
      for (const TilePart& part : parts_of(grid, tile, step, tiles_of(s).grid())) {
        GramResult<Scalar> numbers = tiles_of(s).compute(part.rows, part.columns);
        for (const std::string& array : facts_.arrays()) {
          const Matrix<Scalar>& from = TileFiles<Scalar>::array_of(numbers, array);
          Matrix<Scalar>& to = TileFiles<Scalar>::array_of(kernels, array);
          for_each_pair_of_step(part, grid.is_symmetric(), step, [&](Index i, Index j) {
            const Scalar number = from(i - part.rows.begin, j - part.columns.begin);
            to(i - row, j - column) = number;
            if (mirrored) to(j - row, i - column) = number;
          });
        }
      }
    }
    return computed;
  }

  /// Pair (i, j), i <= j if the store is symmetric, by itself: the numbers of the arrays, in their order.
  std::vector<Scalar> pair(Index i, Index j) {
    const Index later = facts_.is_symmetric() ? std::max(i, j) : i;
    std::size_t s = 0;
    while (facts_.steps()[s] <= later) ++s;
    const Index grid = tiles_of(s).grid();
    const auto block = [&](Index input, Index end) {
      const Index begin = input - input % grid;
      return InputRange{begin, std::min(begin + grid, end)};
    };
    const InputRange rows = block(i, tiles_of(s).rows()), columns = block(j, tiles_of(s).columns());
    // Pairs of one block follow each other (sort_by_block()), so that the last block is kept.
    if (last_part_ != std::tuple(s, rows.begin, columns.begin)) {
      last_numbers_ = tiles_of(s).compute(rows, columns);
      last_part_ = {s, rows.begin, columns.begin};
    }
    std::vector<Scalar> numbers;
    for (const std::string& array : facts_.arrays())
      numbers.push_back(TileFiles<Scalar>::array_of(last_numbers_, array)(i - rows.begin, j - columns.begin));
    return numbers;
  }

  /// Sorts pairs so that those that pair() computes together follow each other.
  void sort_by_block(std::vector<std::pair<Index, Index>>& pairs) {
    const Index grid = tiles_of(facts_.steps().size() - 1).grid();
    if (grid <= 1) return;
    std::stable_sort(pairs.begin(), pairs.end(), [grid](const auto& left, const auto& right) {
      return std::pair(left.first / grid, left.second / grid) <
             std::pair(right.first / grid, right.second / grid);
    });
  }

 private:
  /// The tiles of the inputs that there were after a step, made when they are first needed.
  GramTiles<Scalar>& tiles_of(std::size_t step) {
    auto& tiles = tiles_of_step_[step];
    if (!tiles) {
      const Inputs<Scalar> rows = inputs_.x1.slice(0, facts_.steps()[step]);
      tiles = inputs_.x2 ? std::make_unique<GramTiles<Scalar>>(inputs_.network, rows, *inputs_.x2, options_)
                         : std::make_unique<GramTiles<Scalar>>(inputs_.network, rows, options_);
    }
    return *tiles;
  }

  [[nodiscard]] bool is_missing(const TileGrid& grid, TileIndex tile, GrowthStep step,
                                const GramResult<Scalar>& kernels) const {
    const InputRange rows = grid.rows_of(tile), columns = grid.columns_of(tile);
    bool missing = false;
    for (const Matrix<Scalar>* kernel : {&kernels.nngp, &kernels.ntk})
      if (kernel->size() > 0)
        for_each_pair_of_step({rows, columns}, grid.is_symmetric(), step, [&](Index i, Index j) {
          missing = missing || std::isnan((*kernel)(i - rows.begin, j - columns.begin));
        });
    return missing;
  }

  const StoreInputs<Scalar>& inputs_;
  const StoreFacts& facts_;
  GramOptions options_;
  std::vector<std::unique_ptr<GramTiles<Scalar>>> tiles_of_step_;
  std::tuple<std::size_t, Index, Index> last_part_{facts_.steps().size(), 0, 0};
  GramResult<Scalar> last_numbers_;
};

}  // namespace widelimit::store
