#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "distributed/rank_solver.hpp"
#include "distributed/tile_dealer.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/store/tile_grid.hpp"

namespace widelimit::distributed {

/// Which rank gives which tile of a Gram matrix, and those of this rank.
struct RankTiles {
  store::TileGrid grid;
  std::vector<int> owners;  ///< grid.count()
  double epsilon;           ///< Machine epsilon of the numbers.
  /// A tile of this rank; what it throws is an error on all.
  std::function<Matrix<double>(const std::string& kernel, Index tile)> own;
};

/// A Gram matrix whose tiles the ranks give each other. All functions are for all ranks together; none gives the whole
/// matrix, which matrix() answers with a std::logic_error.
class RankGram final : public gp::GramSource {
 public:
  /// `ranks` must outlive it.
  RankGram(const RankSolver& ranks, RankTiles tiles);

  [[nodiscard]] gp::DoubleMatrix matrix(const std::string& kernel) const override;
  [[nodiscard]] std::shared_ptr<const gp::KernelOperator> as_operator(
      const std::string& kernel) const override;
  [[nodiscard]] gp::CrossGram as_cross(const std::string& kernel) const override;
  [[nodiscard]] EachTile tiles(const std::string& kernel) const;

 private:
  const RankSolver& ranks_;
  std::shared_ptr<const RankTiles> tiles_;
};

/// Of a store that is complete: each rank reads its share of the tiles.
[[nodiscard]] RankTiles rank_tiles_in_store(const RankSolver& ranks, const std::filesystem::path& folder,
                                            store::UnrecordedTiles unrecorded);

/// Computed now, of x1 with x2 (with itself where x2 is null): tiles are dealt to whoever is free, who keeps them. The
/// progress of `options` is not told.
template <typename Scalar>
[[nodiscard]] RankTiles rank_tiles_in_memory(TileDealer& dealer, const Network& network,
                                             const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                             const GramOptions& options);

}  // namespace widelimit::distributed
