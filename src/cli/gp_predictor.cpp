#include "cli/gp_predictor.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include "cli/solver_progress.hpp"
#include "gp/solvers/rounding_error.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::cli {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Predictor {
 public:
  Predictor(const GpTargets& targets, const GpOptions& options, const Interrupt& interrupt, GpGrams grams)
      : targets_{targets}, options_{options}, interrupt_{interrupt}, grams_{std::move(grams)} {}

  std::vector<GpPrediction> run() {
    const bool iterative = options_.solver == Solver::conjugate_gradients;
    if (options_.kernels != Kernels::ntk) iterative ? regress_iteratively() : regress();
    if (options_.kernels == Kernels::nngp) return std::move(predictions_);
    if (iterative)
      flow_iteratively();
    else if (options_.times.empty())
      converge();
    else
      flow();
    return std::move(predictions_);
  }

 private:
  [[nodiscard]] gp::Criterion criterion() const { return criterion_of(options_, targets_.kind); }

  /// What was given, or what select(criterion) chooses.
  template <typename Select>
  ChosenRegulariser regulariser(const char* kernel, const Select& select) const {
    if (options_.regulariser) {
      ChosenRegulariser given(*options_.regulariser);
      const numerics::BlasThreads guard(numerics::resolve_threads(options_.threads, "gp"));
      given.noise_floor = gp::noise_floor(*grams_.train->as_operator(kernel));
      return given;
    }
    const ChosenRegulariser chosen(select(criterion()));
    interrupt_.check();
    return chosen;
  }

  /// Of a Regression with one of the kernels. Densities of validation inputs cost nearly as much as all the rest and, of
  /// the NTK, would be those of another model: they are computed where the choice is by them.
  [[nodiscard]] gp::Selection select_regression(const char* kernel, gp::Criterion by) const {
    std::optional<gp::ValidationKernel> seen;
    if (gp::needs_validation(by))
      seen.emplace(gp::ValidationKernel{grams_.validation->matrix(kernel),
                                        by == gp::Criterion::negative_log_predictive_density
                                            ? grams_.validation_variances
                                            : Vector<double>(),
                                        *targets_.validation});
    return gp::select_regulariser(grams_.train->matrix(kernel), targets_.train, std::move(seen), by,
                                  options_.candidates, options_.threads);
  }

  /// Of converged networks, whose means are those of a Regression with the NTK and whose densities are not.
  [[nodiscard]] gp::Selection select_flow(gp::Criterion by) const {
    if (by == gp::Criterion::accuracy || by == gp::Criterion::mean_squared_error)
      return select_regression("ntk", by);
    std::optional<gp::ValidationKernels> seen;
    if (gp::needs_validation(by))
      seen.emplace(gp::ValidationKernels{grams_.validation->matrix("nngp"), grams_.validation->matrix("ntk"),
                                         grams_.validation_variances, *targets_.validation});
    return gp::select_flow_regulariser(grams_.train->matrix("nngp"), grams_.train->matrix("ntk"),
                                       targets_.train, std::move(seen), by, options_.candidates,
                                       options_.threads);
  }

  /// The training kernel where it is wanted again, or for the last time.
  [[nodiscard]] gp::DoubleMatrix nngp_of_regression() {
    return options_.kernels == Kernels::nngp ? grams_.train->take("nngp") : grams_.train->matrix("nngp");
  }

  void regress() {
    const Stopwatch watch;
    const ChosenRegulariser chosen =
        regulariser("nngp", [this](gp::Criterion by) { return select_regression("nngp", by); });
    auto regression = gp::Regression::fit(nngp_of_regression(), targets_.train,
                                          gp::RelativeRegulariser(chosen.value), options_.threads);
    if (options_.amplitude) regression = regression.with_amplitude(*options_.amplitude);
    interrupt_.check();
    const Matrix<double> cross = grams_.test->matrix("nngp").take();
    add({.name = "nngp",
         .amplitude = regression.amplitude(),
         .noise_variance = regression.noise_variance(),
         .mean = regression.mean(cross),
         .variance = regression.variance(cross, grams_.test_variances),
         .log_marginal_likelihood = regression.log_marginal_likelihood()},
        chosen, watch);
  }

  void converge() {
    const Stopwatch watch;
    const ChosenRegulariser chosen = regulariser("ntk", [this](gp::Criterion by) { return select_flow(by); });
    auto flow = gp::ConvergedFlow::fit(
        grams_.train->take("nngp"), grams_.train->take("ntk"), targets_.train,
        gp::RelativeRegulariser(chosen.value), options_.threads,
        options_.amplitude ? gp::ConvergedFlow::Holds::factor : gp::ConvergedFlow::Holds::inverse);
    interrupt_.check();
    flow = flow.with_amplitude(options_.amplitude ? *options_.amplitude : flow.leave_one_out_amplitude());
    interrupt_.check();
    const gp::DoubleMatrix nngp = grams_.test->matrix("nngp"), ntk = grams_.test->matrix("ntk");
    add({.name = flow_name(0),
         .time = gp::infinite_time,
         .amplitude = flow.amplitude(),
         .noise_variance = flow.regulariser_variance(),
         .mean = flow.mean(ntk),
         .variance = flow.variance(nngp, ntk, grams_.test_variances)},
        chosen, watch);
  }

  void flow() {
    Stopwatch watch;
    ChosenRegulariser chosen = regulariser("ntk", [this](gp::Criterion by) { return select_flow(by); });
    auto flow = gp::GradientFlow::fit(grams_.train->take("nngp"), grams_.train->take("ntk"), targets_.train,
                                      gp::RelativeRegulariser(chosen.value), 1, options_.threads);
    flow = flow.with_amplitude(options_.amplitude ? *options_.amplitude : flow.leave_one_out_amplitude());
    const Matrix<double> nngp = grams_.test->matrix("nngp").take(), ntk = grams_.test->matrix("ntk").take();
    std::vector<double> times{gp::infinite_time};
    times.insert(times.end(), options_.times.begin(), options_.times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
      interrupt_.check();
      add({.name = flow_name(i),
           .time = times[i],
           .amplitude = flow.amplitude(),
           .noise_variance = flow.regulariser_variance(),
           .mean = flow.mean(times[i], ntk),
           .variance = flow.variance(times[i], nngp, ntk, grams_.test_variances)},
          chosen, watch);
      chosen.candidates.clear();
      chosen.noise_floor = 0;
      watch = Stopwatch();
    }
  }

  /// Conjugate gradients with a training kernel, for the given regulariser or all candidates at once.
  [[nodiscard]] std::pair<gp::IterativeRegression, ChosenRegulariser> fit_iteratively(
      const char* kernel) const {
    // Variances are solved for later, and tell of it too.
    const auto progress = std::make_shared<SolverProgress>(kernel, options_.residual);
    const gp::ConjugateGradientOptions options{
        .relative_residual = options_.residual,
        .threads = options_.threads,
        .stop = interrupt_.token(),
        .progress = [progress](int passes, double residual) { progress->show(passes, residual); }};
    auto gram = grams_.train->as_operator(kernel);
    if (options_.regulariser)
      return {gp::IterativeRegression::fit(std::move(gram), targets_.train,
                                           gp::RelativeRegulariser(*options_.regulariser), options),
              ChosenRegulariser(*options_.regulariser)};
    auto chosen =
        gp::IterativeRegression::select(std::move(gram), targets_.train, grams_.validation->as_cross(kernel),
                                        *targets_.validation, options_.candidates, criterion(), options);
    return {std::move(chosen.regression), ChosenRegulariser(chosen.selection)};
  }

  /// What all predictions by conjugate gradients have; the variance is left to be filled in.
  [[nodiscard]] Posterior posterior_of(const gp::IterativeRegression& regression, const char* kernel) const {
    return {.name = kernel,
            .amplitude = regression.amplitude(),
            .noise_variance = regression.noise_variance(),
            .mean = regression.mean(grams_.test->as_cross(kernel)),
            .variance = {},
            .iterations = IterativeSolution{regression.passes(), regression.relative_residual()}};
  }

  void regress_iteratively() {
    const Stopwatch watch;
    const auto [fitted, chosen] = fit_iteratively("nngp");
    const gp::IterativeRegression regression =
        options_.amplitude ? fitted.with_amplitude(*options_.amplitude) : fitted;
    Posterior posterior = posterior_of(regression, "nngp");
    posterior.variance = regression.variance(grams_.test->as_cross("nngp"), grams_.test_variances);
    add(std::move(posterior), chosen, watch);
  }

  void flow_iteratively() {
    const Stopwatch watch;
    const auto [fitted, chosen] = fit_iteratively("ntk");
    const auto nngp = grams_.train->as_operator("nngp");
    const gp::IterativeRegression regression = fitted.with_amplitude(
        options_.amplitude ? *options_.amplitude : fitted.flow_leave_one_out_amplitude(*nngp));
    Posterior posterior = posterior_of(regression, "ntk");
    posterior.time = gp::infinite_time;
    posterior.variance = regression.flow_variance(*nngp, grams_.test->as_cross("nngp"),
                                                  grams_.test->as_cross("ntk"), grams_.test_variances);
    add(std::move(posterior), chosen, watch);
  }

  void add(Posterior posterior, const ChosenRegulariser& chosen, const Stopwatch& watch) {
    predictions_.push_back(
        prediction_of(std::move(posterior), chosen, targets_, criterion(), watch.seconds()));
  }

  const GpTargets& targets_;
  const GpOptions& options_;
  const Interrupt& interrupt_;
  GpGrams grams_;
  std::vector<GpPrediction> predictions_;
};

}  // namespace

std::vector<GpPrediction> predict(const GpTargets& targets, const GpOptions& options,
                                  const Interrupt& interrupt, GpGrams grams) {
  return Predictor(targets, options, interrupt, std::move(grams)).run();
}

}  // namespace widelimit::cli
