// Parts of a store: every tile in one of them, equal costs; and what costs are.
#include "store/tile_shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "support/random_inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::store {
namespace {

using testing::random_inputs;

/// Lengths as those of reviews: most short, some long.
Inputs<double> ragged_inputs(Index count, Index longest) {
  std::vector<xt::xarray<double>> batch;
  for (Index i = 0; i < count; ++i) {
    const double share = static_cast<double>((i * 37) % count + 1) / static_cast<double>(count);
    const Index length =
        std::max<Index>(1, static_cast<Index>(share * share * share * static_cast<double>(longest)));
    batch.push_back(random_inputs(static_cast<unsigned>(i), {length, 2}));
  }
  return Inputs<double>(std::move(batch));
}

void check_parts(const TileGrid& grid, Index parts, const std::function<double(TileIndex)>& cost) {
  std::set<Index> all;
  double least = 0, most = 0, total = 0;
  for (Index part = 1; part <= parts; ++part) {
    double load = 0;
    for (const Index tile : tiles_of_part(grid, part, parts, cost)) {
      CHECK(all.insert(tile).second);
      load += cost(grid.tile(tile));
    }
    least = part == 1 ? load : std::min(least, load);
    most = std::max(most, load);
    total += load;
  }
  CHECK(static_cast<Index>(all.size()) == grid.count());
  const double mean = total / static_cast<double>(parts);
  CHECK(most < 1.05 * mean);
  CHECK(least > 0.95 * mean);
}

TEST_CASE("parts: every tile once, costs equal to 5 %, of ragged inputs too") {
  using namespace layers;
  const Network network({conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  const auto x = ragged_inputs(600, 400);
  const TileCosts costs(network, x, nullptr, {});
  const TileGrid grid(600, 600, 16, true);
  const auto cost = [&](TileIndex tile) { return costs(grid, tile); };
  for (const Index parts : {1, 2, 3, 8, 17}) check_parts(grid, parts, cost);
  // The order of the inputs must matter, or the test shows nothing.
  double least = cost(grid.tile(1)), most = least;
  for (Index t = 0; t < grid.count(); ++t) {
    const TileIndex tile = grid.tile(t);
    if (tile.row == tile.column || grid.columns_of(tile).size() < 16) continue;
    least = std::min(least, cost(tile)), most = std::max(most, cost(tile));
  }
  CHECK(most > 1.1 * least);
}

TEST_CASE("parts: more than there are tiles, and than fit into memory") {
  const TileGrid grid(40, 40, 16, true);
  const auto cost = [&](TileIndex tile) { return static_cast<double>(grid.pairs(tile)); };
  std::set<Index> all;
  for (Index part = 1; part <= grid.count(); ++part) {
    const auto own = tiles_of_part(grid, part, Index{1} << 60, cost);
    REQUIRE(own.size() == 1);
    all.insert(own.front());
  }
  CHECK(static_cast<Index>(all.size()) == grid.count());
  CHECK(tiles_of_part(grid, grid.count() + 1, Index{1} << 60, cost).empty());
}

TEST_CASE("costs grow as the operations of the plan do") {
  using namespace layers;
  const std::vector<xt::xarray<double>> batch{random_inputs(1, {10, 2}), random_inputs(2, {80, 2})};
  const Inputs<double> x(batch);
  const auto ratio = [&](const Network& network) {
    const TileCosts costs(network, x, nullptr, {});
    const TileGrid grid(2, 2, 1, true);
    return costs(grid, {1, 1}) / costs(grid, {0, 0});
  };
  const double pooled =
      ratio(Network({conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool()}));
  CHECK(pooled > 50);
  CHECK(pooled < 80);  // 8 x 8 times the positions, less at the ends
  const double attended = ratio(Network({attention(), dense(), relu(), attention(), global_average_pool()}));
  CHECK(attended > 2 * pooled);
}

TEST_CASE("tiles of a new store: larger ones of cheap pairs, few of few inputs, whole products of vectors") {
  using namespace layers;
  const Network images({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  const Network vectors({dense(), relu(), dense()});
  const auto side = [](const Network& network, const std::vector<Index>& dimensions, Index grid) {
    const xt::xarray<float> x =
        xt::zeros<float>(std::vector<std::size_t>(dimensions.begin(), dimensions.end()));
    return default_tile_side<float>(network, x, {}, grid);
  };
  CHECK(side(images, {5000, 4, 4, 1}, 1) == 1024);
  CHECK(side(images, {5000, 32, 32, 1}, 1) < 256);
  CHECK(side(images, {100, 4, 4, 1}, 1) == 64);
  CHECK(side(vectors, {100, 4}, 256) == 512);
  CHECK(side(vectors, {60000, 4}, 512) == 2048);
}

}  // namespace
}  // namespace widelimit::store
