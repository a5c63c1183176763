#pragma once

#include "distributed/process_grid.hpp"
#include "distributed/rank_solver.hpp"

namespace widelimit::distributed {

/// Solving over the ranks of MPI, by ScaLAPACK.
class MpiSolver final : public RankSolver {
 public:
  /// Collective. `threads`: of each rank, for its blocks.
  explicit MpiSolver(int threads) : grid_{MPI_COMM_WORLD}, threads_{threads} {}

  [[nodiscard]] int rank() const override { return grid_.rank(); }
  [[nodiscard]] int ranks() const override { return grid_.ranks(); }
  void add_up(double* numbers, Index count) const override { grid_.add_up(numbers, count); }
  void share(double* numbers, Index count, int from) const override { grid_.share(numbers, count, from); }
  void agree(const std::string& failure) const override { grid_.agree(failure); }
  [[nodiscard]] std::string against_size(Index n) const override;
  [[nodiscard]] std::unique_ptr<RankRegression> factorize(const EachTile& gram, const Matrix<double>& targets,
                                                          const gp::Noise& noise) const override;

 private:
  ProcessGrid grid_;
  int threads_;
};

}  // namespace widelimit::distributed
