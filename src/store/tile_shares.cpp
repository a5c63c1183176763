#include "store/tile_shares.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "widelimit/kernel/explain.hpp"

namespace widelimit::store {
namespace {

template <typename Scalar>
double pair_operations(const Network& network, const Inputs<Scalar>& x, const Shape& shape,
                       const GramOptions& options) {
  GramOptions quiet;
  quiet.kernels = options.kernels;
  return explain<Scalar>(network, shape, x.channels(), quiet, 0).flops;
}

template <typename Scalar>
std::pair<Shape, Shape> smallest_and_largest(const Inputs<Scalar>& x) {
  Shape smallest = x.shape(0), largest = x.shape(0);
  for (Index i = 0; i < x.size(); ++i) {
    if (position_count(x.shape(i)) < position_count(smallest)) smallest = x.shape(i);
    if (position_count(x.shape(i)) > position_count(largest)) largest = x.shape(i);
  }
  return {smallest, largest};
}

/// The power of the positions with which a pair's operations grow.
template <typename Scalar>
double growth_power(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  const auto [smallest, largest] = smallest_and_largest(x);
  const double ratio =
      static_cast<double>(position_count(largest)) / static_cast<double>(position_count(smallest));
  // Inputs of one size all cost the same.
  if (ratio == 1) return 0;
  // Layers of graphs cannot be explained without a graph, which is no part of a shape; the square is a guess.
  if (!x.graphs().empty()) return 2;
  const double few = pair_operations(network, x, smallest, options),
               many = pair_operations(network, x, largest, options);
  return few > 0 && many > few ? std::log(many / few) / std::log(ratio) : 0;
}

template <typename Scalar>
std::vector<double> cost_sums(const Inputs<Scalar>& x, double power) {
  std::vector<double> sums{0};
  for (Index i = 0; i < x.size(); ++i)
    // A pair costs the product of what its two inputs contribute, hence half of the power for each.
    sums.push_back(sums.back() + std::pow(static_cast<double>(position_count(x.shape(i))), power / 2));
  return sums;
}

double cost_between(const std::vector<double>& sums, InputRange range) {
  return sums[static_cast<std::size_t>(range.end)] - sums[static_cast<std::size_t>(range.begin)];
}

}  // namespace

template <typename Scalar>
TileCosts::TileCosts(const Network& network, const Inputs<Scalar>& x1,
                     const std::type_identity_t<Inputs<Scalar>>* x2, const GramOptions& options) {
  const double power = growth_power(network, x1, options);
  row_sums_ = cost_sums(x1, power);
  column_sums_ = x2 == nullptr ? row_sums_ : cost_sums(*x2, power);
}

double TileCosts::operator()(const TileGrid& grid, TileIndex tile) const {
  const double rows = cost_between(row_sums_, grid.rows_of(tile)),
               columns = cost_between(column_sums_, grid.columns_of(tile));
  // On the diagonal half of the pairs are mirror images.
  return grid.is_symmetric() && tile.row == tile.column ? rows * columns / 2 : rows * columns;
}

std::vector<Index> tiles_of_part(const TileGrid& grid, Index number, Index parts,
                                 const std::function<double(TileIndex)>& cost) {
  std::vector<std::pair<double, Index>> by_cost;
  // The most expensive tiles come first, each to the part that has the least so far. All
  // processes find the same shares.
  for (Index t = 0; t < grid.count(); ++t) by_cost.emplace_back(-cost(grid.tile(t)), t);
  std::sort(by_cost.begin(), by_cost.end());
  using Load = std::pair<double, Index>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  // Parts beyond the number of tiles get none.
  for (Index part = 1; part <= std::min(parts, grid.count()); ++part) loads.emplace(0, part);
  std::vector<Index> own;
  for (const auto& [negative_cost, tile] : by_cost) {
    const auto [load, part] = loads.top();
    loads.pop();
    loads.emplace(load - negative_cost, part);
    if (part == number) own.push_back(tile);
  }
  std::sort(own.begin(), own.end());
  return own;
}

Index default_tile_side(Index inputs, Index grid, double pair_operations) {
  constexpr double operations_wanted = 1e11;
  constexpr Index fewest = 64, most = 1024, most_of_vectors = 2048;
  const auto side_for = [&](Index side, Index largest) {
    while (side < largest && 4 * side < inputs) side *= 2;
    return side;
  };
  // Vectors take little time beside what it takes to write a file.
  if (grid > 1) return side_for(512, most_of_vectors);
  Index side = side_for(fewest, most);
  while (side > fewest && pair_operations * static_cast<double>(side * side) > operations_wanted) side /= 2;
  return side;
}

template <typename Scalar>
Index default_tile_side(const Network& network, const Inputs<Scalar>& x, const GramOptions& options,
                        Index grid) {
  // What graphs cost is not known (growth_power()).
  const bool is_known = grid == 1 && x.graphs().empty();
  return default_tile_side(
      x.size(), grid, is_known ? pair_operations(network, x, smallest_and_largest(x).second, options) : 0);
}

template TileCosts::TileCosts(const Network&, const Inputs<float>&, const Inputs<float>*, const GramOptions&);
template TileCosts::TileCosts(const Network&, const Inputs<double>&, const Inputs<double>*,
                              const GramOptions&);
template Index default_tile_side(const Network&, const Inputs<float>&, const GramOptions&, Index);
template Index default_tile_side(const Network&, const Inputs<double>&, const GramOptions&, Index);

}  // namespace widelimit::store
