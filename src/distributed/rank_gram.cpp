#include "distributed/rank_gram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::distributed {
namespace {

/// body(rows, columns, tile) for the tiles of this rank; an error on one is an error on all.
template <typename Body>
void for_each_own_tile(const RankSolver& ranks, const RankTiles& tiles, const std::string& kernel,
                       Body body) {
  std::string failure;
  try {
    for (Index t = 0; t < tiles.grid.count(); ++t)
      if (tiles.owners[static_cast<std::size_t>(t)] == ranks.rank())
        body(tiles.grid.rows_of(tiles.grid.tile(t)), tiles.grid.columns_of(tiles.grid.tile(t)),
             [&] { return tiles.own(kernel, t); });
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ranks.agree(failure);
}

/// Each rank multiplies with its tiles.
class RankOperator final : public gp::KernelOperator {
 public:
  RankOperator(const RankSolver& ranks, std::shared_ptr<const RankTiles> tiles, std::string kernel)
      : ranks_{ranks}, tiles_{std::move(tiles)}, kernel_{std::move(kernel)} {}

  [[nodiscard]] Index size() const override { return tiles_->grid.rows(); }
  [[nodiscard]] double epsilon() const override { return tiles_->epsilon; }

  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    Matrix<double> product = Matrix<double>::Zero(size(), x.cols());
    for_each_own_tile(ranks_, *tiles_, kernel_, [&](InputRange rows, InputRange columns, const auto& read) {
      gp::add_tile_product(product, read(), rows.begin, columns.begin, x);
    });
    ranks_.add_up(product.data(), product.size());
    return product;
  }

  [[nodiscard]] Vector<double> diagonal() const override {
    Vector<double> diagonal = Vector<double>::Zero(size());
    for_each_own_tile(ranks_, *tiles_, kernel_, [&](InputRange rows, InputRange columns, const auto& read) {
      if (rows == columns) diagonal.segment(rows.begin, rows.size()) = read().diagonal();
    });
    ranks_.add_up(diagonal.data(), diagonal.size());
    return diagonal;
  }

 private:
  const RankSolver& ranks_;
  std::shared_ptr<const RankTiles> tiles_;
  std::string kernel_;
};

/// Some tens of tiles a rank, each a whole number of steps of the engine's grid.
Index side_of_tiles(Index rows, Index columns, Index step, int ranks) {
  constexpr double tiles_of_rank = 32, largest = 1024;
  const double entries = static_cast<double>(rows) * static_cast<double>(columns);
  const double side = std::clamp(std::sqrt(entries / (tiles_of_rank * ranks)), 1.0, largest);
  return (static_cast<Index>(side) + step - 1) / step * step;
}

/// The tiles that this process computed, and whose the others are.
template <typename Scalar>
RankTiles gathered_tiles(const RankSolver& ranks, const store::TileGrid& grid,
                         std::map<Index, GramResult<Scalar>> computed) {
  std::vector<double> numbers(static_cast<std::size_t>(grid.count()), 0);
  for (const auto& [tile, kernels] : computed) numbers[static_cast<std::size_t>(tile)] = ranks.rank();
  ranks.add_up(numbers.data(), grid.count());
  const auto held = std::make_shared<const std::map<Index, GramResult<Scalar>>>(std::move(computed));
  return {grid, std::vector<int>(numbers.begin(), numbers.end()),
          static_cast<double>(std::numeric_limits<Scalar>::epsilon()),
          [held](const std::string& kernel, Index tile) -> Matrix<double> {
            const GramResult<Scalar>& kernels = held->at(tile);
            return (kernel == "nngp" ? kernels.nngp : kernels.ntk).template cast<double>();
          }};
}

}  // namespace

RankGram::RankGram(const RankSolver& ranks, RankTiles tiles)
    : ranks_{ranks}, tiles_{std::make_shared<const RankTiles>(std::move(tiles))} {}

gp::DoubleMatrix RankGram::matrix(const std::string& kernel) const {
  throw std::logic_error("the " + kernel + " of many ranks is never whole");
}

std::shared_ptr<const gp::KernelOperator> RankGram::as_operator(const std::string& kernel) const {
  return std::make_shared<const RankOperator>(ranks_, tiles_, kernel);
}

gp::CrossGram RankGram::as_cross(const std::string& kernel) const {
  const store::TileGrid& grid = tiles_->grid;
  return {grid.rows(), grid.columns(), [this, kernel](Index first, Index count) {
            Matrix<double> band = Matrix<double>::Zero(count, tiles_->grid.columns());
            for_each_own_tile(
                ranks_, *tiles_, kernel, [&](InputRange rows, InputRange columns, const auto& read) {
                  const Index begin = std::max(first, rows.begin), end = std::min(first + count, rows.end);
                  if (begin >= end) return;
                  band.block(begin - first, columns.begin, end - begin, columns.size()) =
                      read().middleRows(begin - rows.begin, end - begin);
                });
            ranks_.add_up(band.data(), band.size());
            return band;
          }};
}

EachTile RankGram::tiles(const std::string& kernel) const {
  return [this, kernel](const TileBody& body) {
    const store::TileGrid& grid = tiles_->grid;
    for (Index t = 0; t < grid.count(); ++t) {
      const InputRange rows = grid.rows_of(grid.tile(t)), columns = grid.columns_of(grid.tile(t));
      const int owner = tiles_->owners[static_cast<std::size_t>(t)];
      Matrix<double> numbers(rows.size(), columns.size());
      std::string failure;
      try {
        if (owner == ranks_.rank()) numbers = tiles_->own(kernel, t);
      } catch (const std::exception& error) {
        failure = error.what();
      }
      ranks_.agree(failure);
      ranks_.share(numbers.data(), numbers.size(), owner);
      body(rows.begin, columns.begin, numbers);
    }
  };
}

RankTiles rank_tiles_in_store(const RankSolver& ranks, const std::filesystem::path& folder,
                              store::UnrecordedTiles unrecorded) {
  const auto stored = std::make_shared<const store::StoredGram>(folder, unrecorded);
  const store::TileGrid grid = stored->grid();
  std::vector<int> owners(static_cast<std::size_t>(grid.count()));
  for (std::size_t t = 0; t < owners.size(); ++t)
    owners[t] = static_cast<int>(t % static_cast<std::size_t>(ranks.ranks()));
  const double epsilon = stored->is_float() ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                            : std::numeric_limits<double>::epsilon();
  return {grid, std::move(owners), epsilon, [stored, grid](const std::string& kernel, Index tile) {
            return stored->tile<double>(kernel, grid.tile(tile));
          }};
}

template <typename Scalar>
RankTiles rank_tiles_in_memory(TileDealer& dealer, const Network& network, const Inputs<Scalar>& x1,
                               const Inputs<Scalar>* x2, const GramOptions& options) {
  GramOptions own = options;
  if (own.threads == 0) own.threads = dealer.threads();
  own.progress = nullptr;
  GramTiles<Scalar> tiles =
      x2 == nullptr ? GramTiles<Scalar>(network, x1, own) : GramTiles<Scalar>(network, x1, *x2, own);
  const RankSolver& ranks = *dealer.solver();
  const store::TileGrid grid(tiles.rows(), tiles.columns(),
                             side_of_tiles(tiles.rows(), tiles.columns(), tiles.grid(), ranks.ranks()),
                             tiles.is_symmetric());
  std::map<Index, GramResult<Scalar>> computed;
  const auto next = dealer.deal();
  for (Index t = next(); t < grid.count(); t = next())
    computed.emplace(t, tiles.compute(grid.rows_of(grid.tile(t)), grid.columns_of(grid.tile(t))));
  dealer.wait_for_all();
  return gathered_tiles(ranks, grid, std::move(computed));
}

template RankTiles rank_tiles_in_memory(TileDealer&, const Network&, const Inputs<float>&,
                                        const Inputs<float>*, const GramOptions&);
template RankTiles rank_tiles_in_memory(TileDealer&, const Network&, const Inputs<double>&,
                                        const Inputs<double>*, const GramOptions&);

}  // namespace widelimit::distributed
