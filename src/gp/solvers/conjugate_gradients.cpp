#include "widelimit/gp/conjugate_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "gp/checks.hpp"
#include "gp/solvers/block_conjugate_gradients.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/rounding_error.hpp"
#include "gp/solvers/shifted_solver.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

constexpr const char* cg_place = "solve_shifted";

void require_cg_options(const ConjugateGradientOptions& options, Index n) {
  if (!(options.relative_residual > 0 && options.relative_residual < 1))
    throw ArgumentError(
        fmt::format("{}: relative_residual must be in (0, 1), got {}", cg_place, options.relative_residual));
  if (options.most_passes < 1)
    throw ArgumentError(
        fmt::format("{}: most_passes must be at least 1, got {}", cg_place, options.most_passes));
  const Index columns = options.preconditioner_columns.value_or(0);
  if (columns < 0 || columns > n / 10)
    throw ArgumentError(fmt::format("{}: preconditioner_columns must be 0 to n / 10 = {}, got {}", cg_place,
                                    n / 10, columns));
}

void require_cg_lambdas(const std::vector<double>& lambdas) {
  if (lambdas.empty()) throw ArgumentError(fmt::format("{}: there must be a lambda, got none", cg_place));
  for (const double lambda : lambdas) require_not_negative(lambda, cg_place, "every lambda");
}

void require_right_hand_sides(const Matrix<double>& b, Index n) {
  require_targets(b, n, cg_place);
  // Search directions of a block are made independent of each other, which more than n of them cannot be.
  if (b.cols() > b.rows())
    throw ArgumentError(fmt::format(
        "{}: expected at most n = {} right-hand sides at a time, got {}; factorize so small a matrix",
        cg_place, b.rows(), b.cols()));
}

Index columns_of(const ConjugateGradientOptions& options, Index n) {
  constexpr Index most = 2000;
  return options.preconditioner_columns.value_or(std::min(n / 10, most));
}

/// Largest ratio of entries; 0 / 0 is 0.
double largest_ratio(const Vector<double>& numbers, const Vector<double>& scales) {
  double largest = 0;
  for (Index i = 0; i < numbers.size(); ++i)
    if (numbers(i) > 0) largest = std::max(largest, numbers(i) / scales(i));
  return largest;
}

/// Columns number i of blocks of `width` side by side.
template <typename All>
auto block(All& all, Index width, std::size_t i) {
  return all.middleCols(static_cast<Index>(i) * width, width);
}

/// Solves for all lambdas side by side: one pass over K multiplies the search directions of all open systems.
class ShiftedSolver {
 public:
  ShiftedSolver(const KernelOperator& gram, const LowRankKernel& kernel, const Matrix<double>& b,
                const std::vector<double>& lambdas, const ConjugateGradientOptions& options)
      : gram_{gram},
        b_{b},
        norms_{b.colwise().norm().transpose()},
        lambdas_{lambdas},
        options_{options},
        kernel_{kernel} {
    result_.passes = 0;
    result_.solutions.assign(lambdas.size(), Matrix<double>::Zero(b.rows(), b.cols()));
    // Targets that are all 0 are solved by weights of 0.
    result_.relative_residuals.assign(lambdas.size(), norms_.isZero(0) ? 0 : 1);
    result_.unsolved.assign(lambdas.size(), "");
  }

  ShiftedSolutions run() {
    std::vector<Matrix<double>> residuals(lambdas_.size(), b_);
    const auto some_open = [this] {
      for (std::size_t i = 0; i < lambdas_.size(); ++i)
        if (is_open(i)) return true;
      return false;
    };
    while (some_open()) improve(residuals);
    return std::move(result_);
  }

 private:
  struct System {
    std::size_t number;
    BlockConjugateGradients iteration;
  };

  [[nodiscard]] bool is_open(std::size_t i) const {
    return result_.unsolved[i].empty() && result_.relative_residuals[i] > options_.relative_residual;
  }

  /// Leaves a lambda out where that is wanted and others can still be solved for; else throws its error.
  template <typename Failure>
  void give_up(std::size_t i, const Failure& failure) {
    result_.unsolved[i] = failure.what();
    const bool all_failed = std::ranges::none_of(result_.unsolved, &std::string::empty);
    if (!options_.leave_out_unsolved || all_failed) throw failure;
  }

  /// Solves for what is left of b (iterative refinement), then computes the residuals themselves in one more pass.
  void improve(std::vector<Matrix<double>>& residuals) {
    std::vector<System> systems;
    for (std::size_t i = 0; i < lambdas_.size(); ++i)
      if (is_open(i)) systems.push_back({i, BlockConjugateGradients(kernel_, lambdas_[i], residuals[i])});
    iterate(std::move(systems));
    Matrix<double> all(b_.rows(), b_.cols() * static_cast<Index>(lambdas_.size()));
    for (std::size_t i = 0; i < lambdas_.size(); ++i) block(all, b_.cols(), i) = result_.solutions[i];
    const Matrix<double> products = multiplied(all);
    for (std::size_t i = 0; i < lambdas_.size(); ++i) {
      residuals[i] = b_ - block(products, b_.cols(), i) - lambdas_[i] * result_.solutions[i];
      const double before = result_.relative_residuals[i];
      result_.relative_residuals[i] = largest_ratio(residuals[i].colwise().norm().transpose(), norms_);
      // A round that does not halve the residual has reached the limit of double precision.
      if (is_open(i) && !(result_.relative_residuals[i] < before / 2)) report_stall(i);
    }
  }

  void iterate(std::vector<System> systems) {
    const Index columns = b_.cols();
    while (!systems.empty()) {
      Matrix<double> searches(b_.rows(), columns * static_cast<Index>(systems.size()));
      for (std::size_t k = 0; k < systems.size(); ++k)
        block(searches, columns, k) = systems[k].iteration.search();
      const Matrix<double> products = multiplied(searches);
      for (std::size_t k = 0; k < systems.size(); ++k)
        if (!systems[k].iteration.advance(block(products, columns, k)))
          give_up(systems[k].number, negative_error(systems[k].iteration.lambda()));
      std::erase_if(systems, [&](const System& system) { return !result_.unsolved[system.number].empty(); });
      report_progress(systems);
      std::erase_if(systems, [&](const System& system) { return finish(system); });
    }
  }

  void report_progress(const std::vector<System>& systems) const {
    if (!options_.progress) return;
    double largest = 0;
    for (const System& system : systems)
      largest = std::max(largest, largest_ratio(system.iteration.residual_norms(), norms_));
    options_.progress(result_.passes, largest);
  }

  /// Adds the solution of a system to the result once it is as good as asked for. True if the system is done.
  bool finish(const System& system) {
    constexpr double margin = 0.5;  // Residuals of the recurrence drift away from the true ones.
    const double residual = largest_ratio(system.iteration.residual_norms(), norms_);
    if (residual > margin * options_.relative_residual && result_.passes < options_.most_passes) return false;
    if (residual > options_.relative_residual) {
      give_up(
          system.number,
          NotConverged(
              fmt::format(
                  "{}: after {} passes over the {} x {} Gram matrix the relative residual "
                  "for {} is {:.3g}, expected {:.3g}; {}",
                  cg_place, result_.passes, b_.rows(), b_.rows(), regulariser_text(system.iteration.lambda()),
                  residual, options_.relative_residual,
                  advice(system.iteration.lambda(), "allow more passes, ask for less, or regularise more")),
              residual));
      return true;
    }
    result_.solutions[system.number] += system.iteration.solution();
    return true;
  }

  Matrix<double> multiplied(const Matrix<double>& x) {
    StopRequest(options_.stop).check();
    ++result_.passes;
    return gram_.multiply(x);
  }

  /// The regulariser as users give it, and as it is added to the diagonal.
  [[nodiscard]] std::string regulariser_text(double lambda) const {
    return fmt::format("the relative regulariser {:.3g} (lambda = {:.6g})", lambda / gram_.diagonal().mean(),
                       lambda);
  }

  void report_stall(std::size_t i) {
    const double residual = result_.relative_residuals[i];
    give_up(i, NotConverged(
                   fmt::format("{}: for {} the relative residual stalls at {:.3g}, expected {:.3g}: the "
                               "condition number of K + lambda I leaves no more digits in double; {}",
                               cg_place, regulariser_text(lambdas_[i]), residual, options_.relative_residual,
                               advice(lambdas_[i], "ask for less, or regularise more")),
                   residual));
  }

  [[nodiscard]] NotPositiveDefinite negative_error(double lambda) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const double enough = lambda_above_rounding();
    const bool is_rounding = lambda < enough;
    return NotPositiveDefinite(
        fmt::format("{}: the Gram matrix plus lambda = {:.6g} is not positive definite; {}", cg_place, lambda,
                    advice(lambda,
                           "it has negative eigenvalues beyond its rounding errors: look for the "
                           "fault in the kernel")),
        nan, is_rounding ? std::optional(enough / gram_.diagonal().mean()) : std::nullopt);
  }

  /// From here on K + lambda I stands above the rounding errors of K, as select_regulariser() wants it.
  [[nodiscard]] double lambda_above_rounding() const {
    if (!spectrum_) spectrum_ = spectrum_of(gram_);
    return signal_to_noise * rounding_error(*spectrum_, gram_.epsilon());
  }

  /// What to do, where lambda stands below the rounding errors of K, and otherwise.
  [[nodiscard]] std::string advice(double lambda, const char* otherwise) const {
    const double enough = lambda_above_rounding();
    if (lambda >= enough) return otherwise;
    const bool is_float = gram_.epsilon() > std::numeric_limits<double>::epsilon();
    return fmt::format(
        "the rounding errors of K, whose entries are {}, are not small compared with lambda: take a relative "
        "regulariser of {:.2g} or more{}",
        is_float ? "float" : "double", enough / gram_.diagonal().mean(),
        is_float ? ", or compute K in double" : "");
  }

  const KernelOperator& gram_;
  const Matrix<double>& b_;
  Vector<double> norms_;
  const std::vector<double>& lambdas_;
  const ConjugateGradientOptions& options_;
  const LowRankKernel& kernel_;
  ShiftedSolutions result_;
  mutable std::optional<Spectrum> spectrum_;  ///< Asked for where something fails.
};

}  // namespace

LowRankKernel preconditioner_of(const KernelOperator& gram, const ConjugateGradientOptions& options) {
  require_cg_options(options, gram.size());
  const numerics::BlasThreads guard(
      useful_threads(gram.size(), numerics::resolve_threads(options.threads, cg_place)));
  return LowRankKernel::of(gram, columns_of(options, gram.size()));
}

ShiftedSolutions solve_shifted(const KernelOperator& gram, const LowRankKernel& preconditioner,
                               const Matrix<double>& b, const std::vector<double>& lambdas,
                               const ConjugateGradientOptions& options) {
  const int threads = numerics::resolve_threads(options.threads, cg_place);
  require_right_hand_sides(b, gram.size());
  require_cg_lambdas(lambdas);
  require_cg_options(options, b.rows());
  const numerics::BlasThreads guard(useful_threads(b.rows(), threads));
  return ShiftedSolver(gram, preconditioner, b, lambdas, options).run();
}

ShiftedSolutions solve_shifted(const KernelOperator& gram, const Matrix<double>& b,
                               const std::vector<double>& lambdas, const ConjugateGradientOptions& options) {
  require_right_hand_sides(b, gram.size());
  require_cg_lambdas(lambdas);
  const LowRankKernel preconditioner = preconditioner_of(gram, options);
  ShiftedSolutions result = solve_shifted(gram, preconditioner, b, lambdas, options);
  // Making the preconditioner was a pass, too.
  if (preconditioner.vectors.cols() > 0) ++result.passes;
  return result;
}

}  // namespace widelimit::gp
