#include "cli/mpi/mpi_solver.hpp"

#include "distributed/distributed_regression.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

class MpiRegression final : public RankRegression {
 public:
  MpiRegression(const distributed::ProcessGrid& grid, const EachTile& gram, const Matrix<double>& targets,
                const gp::Noise& noise, int threads)
      : regression_{grid, gram, targets, noise, distributed::DistributedRegression::default_block, threads} {
    regression_.set_amplitude(1);
  }

  [[nodiscard]] double noise_variance() const override { return regression_.noise_variance(); }
  [[nodiscard]] double log_determinant() const override { return regression_.log_determinant(); }
  [[nodiscard]] const Matrix<double>& weights() const override { return regression_.weights(); }
  [[nodiscard]] Matrix<double> mean(const gp::CrossGram& cross) const override {
    return regression_.mean(cross);
  }
  [[nodiscard]] Vector<double> variance(const gp::CrossGram& cross,
                                        const Vector<double>& test_variances) const override {
    return regression_.variance(cross, test_variances);
  }
  [[nodiscard]] Vector<double> flow_variance(const gp::KernelOperator& nngp, const gp::CrossGram& nngp_cross,
                                             const gp::CrossGram& ntk_cross,
                                             const Vector<double>& nngp_test_variances) const override {
    return regression_.flow_variance(nngp, nngp_cross, ntk_cross, nngp_test_variances);
  }
  [[nodiscard]] gp::LeaveOneOut flow_leave_one_out(const gp::KernelOperator& nngp,
                                                   std::span<const Index> inputs) const override {
    return regression_.flow_leave_one_out(nngp, inputs);
  }

 private:
  distributed::DistributedRegression regression_;
};

}  // namespace

std::string MpiSolver::against_size(Index n) const {
  try {
    distributed::require_local_parts(n, n, ranks(), distributed::DistributedRegression::default_block);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

std::unique_ptr<RankRegression> MpiSolver::factorize(const EachTile& gram, const Matrix<double>& targets,
                                                     const gp::Noise& noise) const {
  return std::make_unique<MpiRegression>(grid_, gram, targets, noise, threads_);
}

}  // namespace widelimit::cli
