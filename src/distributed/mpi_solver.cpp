#include "distributed/mpi_solver.hpp"

#include "distributed/distributed_regression.hpp"
#include "widelimit/error.hpp"

namespace widelimit::distributed {

std::string MpiSolver::against_size(Index n) const {
  try {
    require_local_parts(n, n, ranks(), DistributedRegression::default_block);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

std::unique_ptr<RankRegression> MpiSolver::factorize(const EachTile& gram, const Matrix<double>& targets,
                                                     const gp::Noise& noise) const {
  auto regression = std::make_unique<DistributedRegression>(grid_, gram, targets, noise,
                                                            DistributedRegression::default_block, threads_);
  regression->set_amplitude(1);
  return regression;
}

}  // namespace widelimit::distributed
