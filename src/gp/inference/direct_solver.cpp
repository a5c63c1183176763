#include <optional>
#include <utility>

#include "gp/solvers/rounding_error.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/kernel_solver.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {
namespace {

Vector<double> constant(Index outputs, double value) { return Vector<double>::Constant(outputs, value); }

/// The posterior under the NNGP, in units in which the amplitude is 1 unless a function takes amplitudes.
class RegressionPosterior final : public UnitPosterior {
 public:
  RegressionPosterior(Regression fitted, Matrix<double> targets, const GramSources& grams, LeftOutSets sets,
                      std::optional<LeaveOneOut> others)
      : fitted_{std::move(fitted)},
        targets_{std::move(targets)},
        grams_{grams},
        sets_{std::move(sets)},
        others_{std::move(others)} {}

  [[nodiscard]] Matrix<double> mean() const override {
    return fitted_.mean(grams_.test->matrix("nngp").take());
  }
  [[nodiscard]] Vector<double> variance() const override {
    return fitted_.with_amplitude(1).variance(grams_.test->matrix("nngp").take(), grams_.test_variances);
  }
  [[nodiscard]] double lambda() const override { return fitted_.with_amplitude(1).noise_variance(); }
  [[nodiscard]] Vector<double> amplitudes(bool apart) const override {
    Vector<double> result = constant(targets_.cols(), fitted_.amplitude());
    if (apart)
      for (Index c = 0; c < result.size(); ++c) result(c) = fitted_.output(c, targets_).amplitude();
    return result;
  }
  [[nodiscard]] std::optional<LeaveOneOut> leave_one_out() const override {
    if (others_) return others_;
    return fitted_.with_amplitude(1).leave_one_out(sets_);
  }
  [[nodiscard]] std::optional<double> log_marginal_likelihood(
      const Vector<double>& amplitudes) const override {
    // Outputs of one amplitude share a likelihood.
    if ((amplitudes.array() == amplitudes(0)).all())
      return fitted_.with_amplitude(amplitudes(0)).log_marginal_likelihood();
    double sum = 0;
    for (Index c = 0; c < amplitudes.size(); ++c)
      sum += fitted_.output(c, targets_).with_amplitude(amplitudes(c)).log_marginal_likelihood();
    return sum;
  }
  [[nodiscard]] std::optional<Posterior> kept() const override { return fitted_.with_amplitude(1); }

 private:
  Regression fitted_;
  Matrix<double> targets_;
  const GramSources& grams_;
  LeftOutSets sets_;
  std::optional<LeaveOneOut> others_;  ///< There if the choice of the regulariser has found them.
};

/// Networks trained for infinite time: the converged flow, which needs no eigenvectors.
class ConvergedPosterior final : public UnitPosterior {
 public:
  ConvergedPosterior(ConvergedFlow flow, const GramSources& grams, LeftOutSets sets,
                     std::optional<LeaveOneOut> others)
      : flow_{std::move(flow)}, grams_{grams}, sets_{std::move(sets)}, others_{std::move(others)} {}

  [[nodiscard]] Matrix<double> mean() const override { return flow_.mean(grams_.test->matrix("ntk")); }
  [[nodiscard]] Vector<double> variance() const override {
    return flow_.variance(grams_.test->matrix("nngp"), grams_.test->matrix("ntk"), grams_.test_variances);
  }
  [[nodiscard]] double lambda() const override { return flow_.regulariser_variance(); }
  [[nodiscard]] Vector<double> amplitudes(bool apart) const override {
    if (!apart) return constant(flow_.weights().cols(), others().most_likely_scale(place));
    return others().most_likely_scales(place);
  }
  [[nodiscard]] std::optional<LeaveOneOut> leave_one_out() const override { return others(); }

 private:
  static constexpr const char* place = "ConvergedFlow::leave_one_out";

  /// Computed once.
  [[nodiscard]] const LeaveOneOut& others() const {
    if (!others_) others_ = flow_.leave_one_out(sets_);
    return *others_;
  }

  ConvergedFlow flow_;
  const GramSources& grams_;
  LeftOutSets sets_;
  mutable std::optional<LeaveOneOut> others_;
};

/// Networks trained for a finite or infinite time, from the eigenvectors of the NTK.
class FlowPosterior final : public UnitPosterior {
 public:
  FlowPosterior(GradientFlow flow, LeftOutSets sets, Index outputs, double time, const GramSources& grams)
      : flow_{std::move(flow)}, sets_{std::move(sets)}, outputs_{outputs}, time_{time}, grams_{grams} {}

  [[nodiscard]] Matrix<double> mean() const override {
    return flow_.mean(time_, grams_.test->matrix("ntk").take());
  }
  [[nodiscard]] Vector<double> variance() const override {
    return flow_.variance(time_, grams_.test->matrix("nngp").take(), grams_.test->matrix("ntk").take(),
                          grams_.test_variances);
  }
  [[nodiscard]] double lambda() const override { return flow_.regulariser_variance(); }
  [[nodiscard]] Vector<double> amplitudes(bool apart) const override {
    // The amplitude is that of converged networks (docs/theory/inference.md, section 3).
    constexpr const char* place = "GradientFlow::leave_one_out";
    if (!apart) return constant(outputs_, others().most_likely_scale(place));
    return others().most_likely_scales(place);
  }
  [[nodiscard]] std::optional<LeaveOneOut> leave_one_out() const override { return others(); }
  [[nodiscard]] std::optional<Posterior> kept() const override { return TrainedNetworks(flow_, time_); }

 private:
  /// Computed once.
  [[nodiscard]] const LeaveOneOut& others() const {
    if (!others_) others_ = flow_.leave_one_out(sets_);
    return *others_;
  }

  GradientFlow flow_;
  LeftOutSets sets_;
  Index outputs_;
  double time_;
  const GramSources& grams_;
  mutable std::optional<LeaveOneOut> others_;
};

/// What both kernels' solvers share.
class DirectSolver : public KernelSolver {
 public:
  DirectSolver(GramSources& grams, const SolverTargets& targets, const SolverOptions& options)
      : grams_{grams}, targets_{targets}, options_{options} {}

 protected:
  [[nodiscard]] GramAccuracy accuracy_of(const char* kernel) const {
    const numerics::BlasThreads guard(numerics::resolve_threads(options_.threads, "gp"));
    return gram_accuracy(*grams_.train->as_operator(kernel));
  }

  /// Selections of the regulariser for a Regression with one of the kernels. Densities of validation inputs cost
  /// nearly as much as all the rest and, with the NTK, would be those of another model: they are computed only
  /// where the choice is by them.
  [[nodiscard]] std::vector<Selection> select_regression(const char* kernel) const {
    const Criterion by = options_.criterion;
    std::optional<ValidationKernel> seen;
    if (needs_validation(by))
      seen.emplace(ValidationKernel{
          grams_.validation->matrix(kernel),
          by == Criterion::negative_log_predictive_density ? grams_.validation_variances : Vector<double>(),
          targets_.validation});
    if (targets_.apart)
      return select_regularisers(grams_.train->matrix(kernel), targets_.train, std::move(seen), by,
                                 options_.candidates, options_.threads, targets_.left_out);
    return {select_regulariser(grams_.train->matrix(kernel), targets_.train, std::move(seen), by,
                               options_.candidates, options_.threads, targets_.left_out)};
  }

  [[nodiscard]] LeftOutSets sets() const {
    return representative_sets(targets_.train.rows(), targets_.left_out.groups);
  }

  /// Keeps the selections for others_of(), which uses their leave-one-out residuals again.
  [[nodiscard]] const std::vector<Selection>& selected(std::vector<Selection> selections) {
    return selections_ = std::move(selections);
  }

  /// The leave-one-out residuals of outputs that share a regulariser, if its choice has
  /// computed them; otherwise nothing.
  [[nodiscard]] std::optional<LeaveOneOut> others_of(const std::vector<Index>& outputs) const {
    if (selections_.empty() || selections_.front().others.residuals.size() == 0) return {};
    if (selections_.size() == 1) return selections_.front().others;
    // Outputs of one regulariser have the same variances, so only their residuals are joined, column by column.
    LeaveOneOut others = selections_[static_cast<std::size_t>(outputs.front())].others;
    others.residuals.conservativeResize(Eigen::NoChange, static_cast<Index>(outputs.size()));
    for (std::size_t k = 1; k < outputs.size(); ++k)
      others.residuals.col(static_cast<Index>(k)) =
          selections_[static_cast<std::size_t>(outputs[k])].others.residuals;
    return others;
  }

  GramSources& grams_;
  const SolverTargets& targets_;
  const SolverOptions& options_;

 private:
  std::vector<Selection> selections_;
};

class DirectRegression final : public DirectSolver {
 public:
  DirectRegression(GramSources& grams, const SolverTargets& targets, const SolverOptions& options,
                   bool kernels_follow)
      : DirectSolver(grams, targets, options), kernels_follow_{kernels_follow} {}

  [[nodiscard]] std::vector<Selection> select() override { return selected(select_regression("nngp")); }
  [[nodiscard]] GramAccuracy accuracy() const override { return accuracy_of("nngp"); }
  [[nodiscard]] std::vector<std::unique_ptr<UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                double regulariser, bool last) override {
    Matrix<double> targets = targets_.train_of(outputs);
    // The last fit takes the matrix instead of a copy, unless inference with the NTK needs the NNGP afterwards.
    DoubleMatrix gram = last && !kernels_follow_ ? grams_.train->take("nngp") : grams_.train->matrix("nngp");
    auto regression =
        Regression::fit(std::move(gram), targets, RelativeRegulariser(regulariser), options_.threads);
    std::vector<std::unique_ptr<UnitPosterior>> posteriors;
    posteriors.push_back(std::make_unique<RegressionPosterior>(std::move(regression), std::move(targets),
                                                               grams_, sets(), others_of(outputs)));
    return posteriors;
  }

 private:
  bool kernels_follow_;
};

class DirectFlow final : public DirectSolver {
 public:
  using DirectSolver::DirectSolver;

  /// Means of converged networks are those of a Regression with the NTK, so that criteria of means are judged by one.
  /// Their densities and leave-one-out variances are not, which is why the selections of a Regression are not kept.
  [[nodiscard]] std::vector<Selection> select() override {
    const Criterion by = options_.criterion;
    if (by == Criterion::accuracy || by == Criterion::mean_squared_error) return select_regression("ntk");
    std::optional<ValidationKernels> seen;
    if (needs_validation(by))
      seen.emplace(ValidationKernels{grams_.validation->matrix("nngp"), grams_.validation->matrix("ntk"),
                                     grams_.validation_variances, targets_.validation});
    DoubleMatrix nngp = grams_.train->matrix("nngp"), ntk = grams_.train->matrix("ntk");
    if (targets_.apart)
      return selected(select_flow_regularisers(std::move(nngp), std::move(ntk), targets_.train,
                                               std::move(seen), by, options_.candidates, options_.threads,
                                               targets_.left_out));
    return selected({select_flow_regulariser(std::move(nngp), std::move(ntk), targets_.train, std::move(seen),
                                             by, options_.candidates, options_.threads, targets_.left_out)});
  }

  [[nodiscard]] GramAccuracy accuracy() const override { return accuracy_of("ntk"); }

  [[nodiscard]] std::vector<std::unique_ptr<UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                double regulariser, bool last) override {
    const Matrix<double> targets = targets_.train_of(outputs);
    const auto matrix = [&](const char* kernel) {
      return last ? grams_.train->take(kernel) : grams_.train->matrix(kernel);
    };
    const RelativeRegulariser noise(regulariser);
    std::vector<std::unique_ptr<UnitPosterior>> posteriors;
    if (options_.times.size() == 1 && !options_.keeps_posteriors) {
      // The inverse costs as much as two factorizations, its n columns one by one as much as six: up to a third of the
      // columns are cheaper singly.
      std::optional<LeaveOneOut> others = others_of(outputs);
      const bool few = 3 * static_cast<Index>(sets().inputs.size()) < targets.rows();
      const auto holds = options_.needs_amplitudes && !others && !few ? ConvergedFlow::Holds::inverse
                                                                      : ConvergedFlow::Holds::factor;
      posteriors.push_back(std::make_unique<ConvergedPosterior>(
          ConvergedFlow::fit(matrix("nngp"), matrix("ntk"), targets, noise, options_.threads, holds), grams_,
          sets(), std::move(others)));
      return posteriors;
    }
    // The NNGP is fetched only when the NTK has been decomposed, so that both are not in memory from the start.
    const auto flow = GradientFlow::fit_late([&] { return matrix("nngp"); }, matrix("ntk"), targets, noise, 1,
                                             options_.threads);
    for (const double time : options_.times)
      posteriors.push_back(std::make_unique<FlowPosterior>(flow, sets(), targets.cols(), time, grams_));
    return posteriors;
  }
};

}  // namespace

std::unique_ptr<KernelSolver> direct_solver(const std::string& kernel, GramSources& grams,
                                            const SolverTargets& targets, const SolverOptions& options,
                                            bool kernels_follow) {
  if (kernel == "nngp") return std::make_unique<DirectRegression>(grams, targets, options, kernels_follow);
  return std::make_unique<DirectFlow>(grams, targets, options);
}

}  // namespace widelimit::gp
