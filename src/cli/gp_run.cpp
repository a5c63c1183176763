#include "cli/gp_run.hpp"

#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "cli/gp_kernel.hpp"
#include "cli/gram_from_store.hpp"
#include "cli/progress_bar.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/metrics.hpp"
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

/// All that predictions need of the kernels; the test inputs' own Gram matrix is not among it.
template <typename Scalar>
struct GpGrams {
  GramResult<Scalar> train;             ///< [n, n]
  GramResult<Scalar> validation;        ///< [n_validation, n]; empty without validation data.
  GramResult<Scalar> test;              ///< [n_test, n]
  Vector<double> validation_variances;  ///< NNGP, [n_validation]; empty without validation data.
  Vector<double> test_variances;        ///< NNGP, [n_test]
};

gp::Criterion criterion_of(const GpOptions& options, TargetKind kind) {
  return options.criterion.value_or(kind == TargetKind::classes ? gp::Criterion::accuracy
                                                                : gp::Criterion::mean_squared_error);
}

template <typename Scalar>
GpGrams<Scalar> compute_grams(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                              const Interrupt& interrupt) {
  const bool validate = !options.regulariser && gp::needs_validation(criterion_of(options, task.kind));
  const Index n = task.train.inputs().size(), n_test = task.test.inputs().size();
  const Index n_validation = validate ? task.validation->inputs().size() : 0;
  const Index pairs = n * (n + 1) / 2 + (n_validation + n_test) * n;
  ProgressBar bar(network.name());
  Index before = 0, now = n * (n + 1) / 2;  // Pairs of the Gram matrices before this one, and of this one.
  GramOptions gram_options;
  // The covariance of gradient flow is made of both kernels.
  gram_options.kernels = options.kernels == Kernels::nngp ? Kernels::nngp : Kernels::both;
  gram_options.threads = options.threads;
  gram_options.stop = interrupt.token();
  gram_options.progress = [&](const GramProgress& progress) {
    const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
    bar.show(before + static_cast<Index>(share * static_cast<double>(now)), pairs);
  };

  GpKernel<Scalar> kernel(network, task, options.flip, gram_options, options.gram_folder);
  const auto with_train = [&](const GpSet<Scalar>& set, const char* name) {
    if (options.store.empty()) return kernel.gram(set, task.train, gram_options);
    const Inputs<Scalar> train = task.train.inputs();
    return gram_from_store(options.store / name, network, set.inputs(), &train, gram_options, options.dealer);
  };
  GpGrams<Scalar> grams;
  grams.train = options.store.empty()
                    ? kernel.gram(task.train, gram_options)
                    : gram_from_store<Scalar>(options.store / "train", network, task.train.inputs(), nullptr,
                                              gram_options, options.dealer);
  before = std::exchange(now, n_validation * n);
  if (validate) {
    grams.validation = with_train(*task.validation, "validation-train");
    before += now;
  }
  now = n_test * n;
  grams.test = with_train(task.test, "test-train");
  gram_options.kernels = Kernels::nngp;
  gram_options.progress = nullptr;
  if (validate) grams.validation_variances = kernel.variances(*task.validation, gram_options);
  grams.test_variances = kernel.variances(task.test, gram_options);
  return grams;
}

GpScores scores_of(const GpPrediction& prediction, const Matrix<double>& targets, TargetKind kind) {
  GpScores scores{.accuracy = std::nullopt,
                  .mean_squared_error = gp::mean_squared_error(prediction.mean, targets),
                  .negative_log_predictive_density = gp::negative_log_predictive_density(
                      prediction.mean, prediction.variance, prediction.noise_variance, targets),
                  .expected_calibration_error = std::nullopt};
  if (kind == TargetKind::classes) {
    scores.accuracy = gp::accuracy(prediction.mean, targets);
    scores.expected_calibration_error =
        gp::calibration(prediction.probabilities, gp::classes_of(targets)).expected_error;
  }
  return scores;
}

/// The first prediction of gradient flow is that at infinite time.
std::string flow_name(std::size_t i) { return i == 0 ? "ntk" : "ntk_time" + std::to_string(i - 1); }

/// Turns Gram matrices into predictions, one kernel after the other.
template <typename Scalar>
class Predictor {
 public:
  Predictor(const GpTask<Scalar>& task, const GpOptions& options, const Interrupt& interrupt,
            GpGrams<Scalar> grams)
      : task_{task}, options_{options}, interrupt_{interrupt}, grams_{std::move(grams)} {}

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
  struct Regulariser {
    double value;
    std::vector<gp::RegulariserScore> candidates;
    double noise_floor = 0;
  };

  [[nodiscard]] gp::Criterion criterion() const { return criterion_of(options_, task_.kind); }

  /// What was given, or what select(criterion) chooses.
  template <typename Select>
  Regulariser regulariser(const Select& select) const {
    if (options_.regulariser) return {*options_.regulariser, {}};
    const gp::Selection selection = select(criterion());
    interrupt_.check();
    return {selection.best.value(), selection.scores, selection.noise_floor};
  }

  /// Of a Regression with one of the kernels.
  gp::Selection select_regression(Matrix<Scalar> GramResult<Scalar>::*kernel, gp::Criterion by) const {
    std::optional<gp::ValidationKernel> seen;
    if (gp::needs_validation(by))
      seen.emplace(gp::ValidationKernel{grams_.validation.*kernel, grams_.validation_variances,
                                        *task_.validation->targets});
    return gp::select_regulariser(grams_.train.*kernel, *task_.train.targets, std::move(seen), by,
                                  gp::regulariser_grid(), options_.threads);
  }

  /// Of converged networks, whose means are those of a Regression with the NTK and whose densities are not.
  gp::Selection select_flow(gp::Criterion by) const {
    if (by == gp::Criterion::accuracy || by == gp::Criterion::mean_squared_error)
      return select_regression(&GramResult<Scalar>::ntk, by);
    std::optional<gp::ValidationKernels> seen;
    if (gp::needs_validation(by))
      seen.emplace(gp::ValidationKernels{grams_.validation.nngp, grams_.validation.ntk,
                                         grams_.validation_variances, *task_.validation->targets});
    return gp::select_flow_regulariser(grams_.train.nngp, grams_.train.ntk, *task_.train.targets,
                                       std::move(seen), by, gp::regulariser_grid(), options_.threads);
  }

  Regulariser regulariser(const gp::KernelOperator& train, const Matrix<Scalar>& validation) const {
    if (options_.regulariser) return {*options_.regulariser, {}};
    const auto selection =
        gp::select_regulariser(train, std::numeric_limits<Scalar>::epsilon(), *task_.train.targets,
                               validation.template cast<double>(), *task_.validation->targets,
                               gp::regulariser_grid(), criterion(), iteration());
    return {selection.best.value(), selection.scores, selection.noise_floor};
  }

  [[nodiscard]] gp::ConjugateGradientOptions iteration() const {
    return {.threads = options_.threads, .stop = interrupt_.token()};
  }

  gp::IterativeRegression fit_iteratively(const Matrix<Scalar>& train, const Matrix<Scalar>& validation,
                                          Regulariser& chosen) const {
    const auto gram = std::make_shared<const gp::MatrixOperator<Scalar>>(train);
    chosen = regulariser(*gram, validation);
    auto regression = gp::IterativeRegression::fit(gram, *task_.train.targets,
                                                   gp::RelativeRegulariser(chosen.value), iteration());
    return options_.amplitude ? regression.with_amplitude(*options_.amplitude) : regression;
  }

  void regress_iteratively() {
    const Stopwatch watch;
    Regulariser chosen{};
    const auto regression = fit_iteratively(grams_.train.nngp, grams_.validation.nngp, chosen);
    const Matrix<double> cross = grams_.test.nngp.template cast<double>();
    add({.name = "nngp",
         .time = std::nullopt,
         .regulariser = chosen.value,
         .amplitude = regression.amplitude(),
         .noise_variance = regression.noise_variance(),
         .log_marginal_likelihood = std::nullopt,
         .mean = regression.mean(cross),
         .variance = regression.variance(cross, grams_.test_variances),
         .probabilities = {},
         .scores = std::nullopt,
         .solve_seconds = watch.seconds(),
         .criterion = criterion(),
         .candidates = std::move(chosen.candidates),
         .noise_floor = chosen.noise_floor});
  }

  void flow_iteratively() {
    const Stopwatch watch;
    Regulariser chosen{};
    const auto regression = fit_iteratively(grams_.train.ntk, grams_.validation.ntk, chosen);
    const Matrix<double> cross = grams_.test.ntk.template cast<double>();
    add({.name = flow_name(0),
         .time = gp::infinite_time,
         .regulariser = chosen.value,
         .amplitude = regression.amplitude(),
         .noise_variance = regression.noise_variance(),
         .log_marginal_likelihood = std::nullopt,
         .mean = regression.mean(cross),
         .variance =
             regression.flow_variance(gp::MatrixOperator<Scalar>(grams_.train.nngp),
                                      grams_.test.nngp.template cast<double>(), cross, grams_.test_variances),
         .probabilities = {},
         .scores = std::nullopt,
         .solve_seconds = watch.seconds(),
         .criterion = criterion(),
         .candidates = std::move(chosen.candidates),
         .noise_floor = chosen.noise_floor});
  }

  void converge() {
    const Stopwatch watch;
    auto [value, candidates, noise_floor] = regulariser([this](gp::Criterion by) { return select_flow(by); });
    auto flow =
        gp::ConvergedFlow::fit(std::move(grams_.train.nngp), std::move(grams_.train.ntk),
                               *task_.train.targets, gp::RelativeRegulariser(value), options_.threads);
    interrupt_.check();
    flow = flow.with_amplitude(options_.amplitude ? *options_.amplitude : flow.leave_one_out_amplitude());
    interrupt_.check();
    add({.name = flow_name(0),
         .time = gp::infinite_time,
         .regulariser = value,
         .amplitude = flow.amplitude(),
         .noise_variance = flow.regulariser_variance(),
         .log_marginal_likelihood = std::nullopt,
         .mean = flow.mean(grams_.test.ntk),
         .variance = flow.variance(grams_.test.nngp, grams_.test.ntk, grams_.test_variances),
         .probabilities = {},
         .scores = std::nullopt,
         .solve_seconds = watch.seconds(),
         .criterion = criterion(),
         .candidates = std::move(candidates),
         .noise_floor = noise_floor});
  }

  void regress() {
    const Stopwatch watch;
    auto [value, candidates, noise_floor] =
        regulariser([this](gp::Criterion by) { return select_regression(&GramResult<Scalar>::nngp, by); });
    auto regression = gp::Regression::fit(grams_.train.nngp, *task_.train.targets,
                                          gp::RelativeRegulariser(value), options_.threads);
    if (options_.amplitude) regression = regression.with_amplitude(*options_.amplitude);
    interrupt_.check();
    add({.name = "nngp",
         .time = std::nullopt,
         .regulariser = value,
         .amplitude = regression.amplitude(),
         .noise_variance = regression.noise_variance(),
         .log_marginal_likelihood = regression.log_marginal_likelihood(),
         .mean = regression.mean(grams_.test.nngp),
         .variance = regression.variance(grams_.test.nngp, grams_.test_variances),
         .probabilities = {},
         .scores = std::nullopt,
         .solve_seconds = watch.seconds(),
         .criterion = criterion(),
         .candidates = std::move(candidates),
         .noise_floor = noise_floor});
  }

  void flow() {
    Stopwatch watch;
    auto [value, candidates, noise_floor] = regulariser([this](gp::Criterion by) { return select_flow(by); });
    auto flow =
        gp::GradientFlow::fit(std::move(grams_.train.nngp), std::move(grams_.train.ntk), *task_.train.targets,
                              gp::RelativeRegulariser(value), 1, options_.threads);
    flow = flow.with_amplitude(options_.amplitude ? *options_.amplitude : flow.leave_one_out_amplitude());
    std::vector<double> times{gp::infinite_time};
    times.insert(times.end(), options_.times.begin(), options_.times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
      interrupt_.check();
      add({.name = flow_name(i),
           .time = times[i],
           .regulariser = value,
           .amplitude = flow.amplitude(),
           .noise_variance = flow.regulariser_variance(),
           .log_marginal_likelihood = std::nullopt,
           .mean = flow.mean(times[i], grams_.test.ntk),
           .variance = flow.variance(times[i], grams_.test.nngp, grams_.test.ntk, grams_.test_variances),
           .probabilities = {},
           .scores = std::nullopt,
           .solve_seconds = watch.seconds(),
           .criterion = criterion(),
           .candidates = std::move(candidates),
           .noise_floor = noise_floor});
      candidates.clear();
      watch = Stopwatch();
    }
  }

  void add(GpPrediction prediction) {
    if (task_.kind == TargetKind::classes)
      prediction.probabilities =
          gp::class_probabilities(prediction.mean, prediction.variance.array() + prediction.noise_variance);
    if (task_.test.targets) prediction.scores = scores_of(prediction, *task_.test.targets, task_.kind);
    predictions_.push_back(std::move(prediction));
  }

  const GpTask<Scalar>& task_;
  const GpOptions& options_;
  const Interrupt& interrupt_;
  GpGrams<Scalar> grams_;
  std::vector<GpPrediction> predictions_;
};

}  // namespace

std::vector<std::string> prediction_names(const GpOptions& options) {
  std::vector<std::string> names;
  if (options.kernels != Kernels::ntk) names.emplace_back("nngp");
  if (options.kernels != Kernels::nngp)
    for (std::size_t i = 0; i <= options.times.size(); ++i) names.push_back(flow_name(i));
  return names;
}

template <typename Scalar>
GpResult run_gp(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                const Interrupt& interrupt) {
  const Stopwatch watch;
  auto grams = compute_grams(network, task, options, interrupt);
  const double gram_seconds = watch.seconds();
  interrupt.check();
  if (options.dealer != nullptr && !options.dealer->is_first()) return {gram_seconds, {}};
  return {.gram_seconds = gram_seconds,
          .predictions = Predictor<Scalar>(task, options, interrupt, std::move(grams)).run()};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const Interrupt&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const Interrupt&);

}  // namespace widelimit::cli
