#include "gp/solvers/solver_time.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "gp/solvers/band_form.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/gp/leave_one_out.hpp"

namespace widelimit::gp {
namespace {

/// Counts for one computation; docs/solvers.md has them in a table.
class Operations {
 public:
  explicit Operations(const Workload& work)
      : needs_{work.needs},
        is_model_{work.work == Work::model},
        n_{static_cast<double>(needs_.inputs)},
        left_out_{static_cast<double>(representative_inputs(needs_.inputs).size())},
        test_{static_cast<double>(needs_.test)},
        validation_{static_cast<double>(needs_.validation)},
        outputs_{static_cast<double>(needs_.outputs)} {}

  [[nodiscard]] double of_factorizations() const {
    double sum = 0;
    // A model has one kernel, gp predicts with each that is asked for.
    if (needs_.kernels == Kernels::nngp || (needs_.kernels == Kernels::both && !is_model_)) sum += nngp();
    if (needs_.kernels != Kernels::nngp) sum += ntk();
    return sum;
  }

  [[nodiscard]] double of_a_pass() const {
    const double candidates = needs_.chooses ? static_cast<double>(needs_.candidates) : 1;
    return 2 * n_ * n_ * outputs_ * candidates;
  }

 private:
  [[nodiscard]] double factorization() const { return n_ * n_ * n_ / 3; }

  /// The reduction to a band, the weights of all candidates, and what is left out of the choice.
  [[nodiscard]] double choice(bool flow) const {
    constexpr auto band = static_cast<double>(BandForm::default_bandwidth);
    const auto candidates = static_cast<double>(needs_.candidates);
    double sum = 4 * factorization() + candidates * (band * band * n_ + 6 * n_ * band * outputs_) +
                 2 * n_ * n_ * outputs_ * (1 + candidates);
    if (!needs_.by_densities) return sum + 2 * n_ * validation_ * outputs_ * candidates;
    const double seen = left_out_ + 2 * validation_;
    sum += left_out_ < n_ ? 2 * n_ * n_ * left_out_ : 4 * factorization();
    sum += candidates * seen * n_ * band * (flow ? 6 : 3);
    // The NNGP in the basis of the NTK's band, and its quadratic forms.
    if (flow) sum += 12 * factorization() + candidates * n_ * n_ * seen;
    return sum;
  }

  [[nodiscard]] double nngp() const {
    return (needs_.chooses ? choice(false) : n_ * n_ * left_out_) + factorization() + n_ * n_ * test_;
  }

  [[nodiscard]] double ntk() const {
    // Eigenvectors, made orthogonal once more (symmetric_eigen()); measured in factorizations.
    constexpr double eigenvectors = 45;
    const double chosen = needs_.chooses ? choice(true) : 3 * n_ * n_ * left_out_;
    if (!needs_.finite_times && !is_model_) return chosen + factorization() + 3 * n_ * n_ * test_;
    return chosen + eigenvectors * factorization() + 6 * n_ * n_ * (test_ * 2 + left_out_);
  }

  const SolverNeeds& needs_;
  bool is_model_;
  double n_;
  double left_out_;
  double test_;
  double validation_;
  double outputs_;
};

}  // namespace

double solver_flops(const Workload& work, Solver solver) {
  const Operations operations(work);
  if (solver == Solver::conjugate_gradients) return operations.of_a_pass();
  return operations.of_factorizations() / (solver == Solver::distributed ? work.needs.ranks : 1);
}

double measure_flops(int threads) {
  constexpr Index n = 1536;
  constexpr const char* where = "measure_flops";
  const numerics::BlasThreads guard(numerics::resolve_threads(threads, where));
  Matrix<double> matrix = Matrix<double>::Constant(n, n, 0.5);
  matrix.diagonal().array() += 1;
  double best = 0;
  // The first one also starts threads.
  for (int turn = 0; turn < 2; ++turn) {
    Matrix<double> copy = matrix;
    const auto start = std::chrono::steady_clock::now();
    static_cast<void>(Cholesky(std::move(copy), 0, where));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(n) * n * n / 3 / seconds);
  }
  return best;
}

}  // namespace widelimit::gp
