#include <optional>
#include <utility>

#include "gp/solvers/rounding_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/kernel_solver.hpp"

namespace widelimit::gp {
namespace {

/// A solution by conjugate gradients. Every prediction costs products with the training kernel,
/// and no matrix is factored.
class IterativePosterior final : public UnitPosterior {
 public:
  /// `fitted` with the amplitude 1.
  IterativePosterior(std::string kernel, IterativeRegression fitted, Matrix<double> targets,
                     const GramSources& grams, double residual)
      : kernel_{std::move(kernel)},
        fitted_{std::move(fitted)},
        targets_{std::move(targets)},
        grams_{grams},
        residual_{residual} {}

  [[nodiscard]] Matrix<double> mean() const override { return fitted_.mean(grams_.test->as_cross(kernel_)); }

  [[nodiscard]] Vector<double> variance() const override {
    if (kernel_ == "nngp") return fitted_.variance(grams_.test->as_cross("nngp"), grams_.test_variances);
    return fitted_.flow_variance(*grams_.train->as_operator("nngp"), grams_.test->as_cross("nngp"),
                                 grams_.test->as_cross("ntk"), grams_.test_variances);
  }

  [[nodiscard]] double lambda() const override { return fitted_.noise_variance(); }

  [[nodiscard]] Vector<double> amplitudes(bool apart) const override {
    const Matrix<double>& weights = fitted_.weights();
    if (kernel_ == "nngp") {
      // With the weights (K + lambda I)^(-1) y at hand the amplitude of
      // docs/theory/inference.md, section 2, is a product.
      const auto products = targets_.cwiseProduct(weights);
      if (apart) return products.colwise().sum().transpose() / static_cast<double>(targets_.rows());
      return Vector<double>::Constant(weights.cols(), products.sum() / static_cast<double>(targets_.size()));
    }
    constexpr const char* where = "IterativeRegression::flow_leave_one_out";
    const LeaveOneOut others = fitted_.flow_leave_one_out(*grams_.train->as_operator("nngp"),
                                                          representative_inputs(targets_.rows()));
    if (apart) return others.most_likely_scales(where);
    return Vector<double>::Constant(weights.cols(), others.most_likely_scale(where));
  }

  [[nodiscard]] std::optional<Posterior> kept() const override {
    return IterativeWeights{kernel_, fitted_.weights(), lambda(), residual_};
  }

  [[nodiscard]] std::optional<IterativeSolution> solution() const override {
    return IterativeSolution{fitted_.passes(), fitted_.relative_residual()};
  }

 private:
  std::string kernel_;
  IterativeRegression fitted_;
  Matrix<double> targets_;
  const GramSources& grams_;
  double residual_;  ///< At which solutions were asked to stop.
};

/// Fits by conjugate gradients, for kernels in memory or on the disk.
class IterativeSolver final : public KernelSolver {
 public:
  IterativeSolver(std::string kernel, GramSources& grams, const SolverTargets& targets,
                  const SolverOptions& options)
      : kernel_{std::move(kernel)}, grams_{grams}, targets_{targets}, options_{options} {
    if (targets_.left_out.groups.empty()) return;
    throw ArgumentError("conjugate gradients leave no inputs out, and have no use for groups");
  }

  [[nodiscard]] std::vector<Selection> select() override {
    auto gram = grams_.train->as_operator(kernel_);
    const CrossGram cross = grams_.validation->as_cross(kernel_);
    if (targets_.apart)
      chosen_ = IterativeRegression::select_each(std::move(gram), targets_.train, cross, targets_.validation,
                                                 options_.candidates, options_.criterion, solver_options());
    else
      chosen_.push_back(IterativeRegression::select(std::move(gram), targets_.train, cross,
                                                    targets_.validation, options_.candidates,
                                                    options_.criterion, solver_options()));
    std::vector<Selection> selections;
    for (const IterativeSelection& choice : chosen_) selections.push_back(choice.selection);
    return selections;
  }

  [[nodiscard]] GramAccuracy accuracy() const override {
    return gram_accuracy(*grams_.train->as_operator(kernel_));
  }

  /// Takes the solutions that select() has found, or solves if it was not called.
  [[nodiscard]] std::vector<std::unique_ptr<UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                double regulariser, bool last) override {
    static_cast<void>(last);
    Matrix<double> targets = targets_.train_of(outputs);
    std::vector<IterativeRegression> fitted;
    if (chosen_.empty())
      fitted.push_back(IterativeRegression::fit(grams_.train->as_operator(kernel_), targets,
                                                RelativeRegulariser(regulariser), solver_options()));
    else if (!targets_.apart)
      // Each output of its own regulariser was solved alone; outputs of one group are joined into one posterior.
      fitted.push_back(chosen_.front().regression);
    else
      for (const Index output : outputs)
        fitted.push_back(chosen_[static_cast<std::size_t>(output)].regression);
    std::vector<std::unique_ptr<UnitPosterior>> posteriors;
    posteriors.push_back(std::make_unique<IterativePosterior>(kernel_, IterativeRegression::joined(fitted),
                                                              std::move(targets), grams_, options_.residual));
    return posteriors;
  }

 private:
  [[nodiscard]] ConjugateGradientOptions solver_options() const {
    ConjugateGradientOptions options{
        .relative_residual = options_.residual, .threads = options_.threads, .stop = options_.stop};
    if (options_.progress)
      options.progress = [report = options_.progress, kernel = kernel_](int passes, double residual) {
        report(kernel, passes, residual);
      };
    return options;
  }

  std::string kernel_;
  GramSources& grams_;
  const SolverTargets& targets_;
  const SolverOptions& options_;
  std::vector<IterativeSelection> chosen_;
};

}  // namespace

std::unique_ptr<KernelSolver> iterative_solver(const std::string& kernel, GramSources& grams,
                                               const SolverTargets& targets, const SolverOptions& options) {
  return std::make_unique<IterativeSolver>(kernel, grams, targets, options);
}

}  // namespace widelimit::gp
