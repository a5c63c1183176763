#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::store {

/// What tiles cost, in units of no meaning: a pair of inputs with p and q positions costs (p q)^(k / 2), k being the
/// power of the positions with which the operations of the network's plan grow (explain()) between its shortest and its
/// longest inputs. Of inputs of one shape, pairs cost the same.
class TileCosts {
 public:
  template <typename Scalar>
  TileCosts(const Network& network, const Inputs<Scalar>& x1, const std::type_identity_t<Inputs<Scalar>>* x2,
            const GramOptions& options);

  [[nodiscard]] double operator()(const TileGrid& grid, TileIndex tile) const;

 private:
  std::vector<double> row_sums_;  ///< Of the costs of the inputs before each, and of all.
  std::vector<double> column_sums_;
};

/// The tiles of part `number` of `parts`, 1 <= number <= parts, in their order: parts cost the same, as far as tiles
/// can be dealt out so. The largest go first, each to the part that has least.
[[nodiscard]] std::vector<Index> tiles_of_part(const TileGrid& grid, Index number, Index parts,
                                               const std::function<double(TileIndex)>& cost);

/// The side of the tiles of a new store: some ten seconds of work of a core, but neither too many files nor too few
/// tiles.
template <typename Scalar>
[[nodiscard]] Index default_tile_side(const Network& network, const Inputs<Scalar>& x,
                                      const GramOptions& options, Index grid);

/// The same for so many inputs whose pairs take so many operations, 0 if that is not known.
[[nodiscard]] Index default_tile_side(Index inputs, Index grid, double pair_operations);

}  // namespace widelimit::store
