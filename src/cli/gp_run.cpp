#include "cli/gp_run.hpp"

#include <chrono>
#include <utility>

#include "cli/gp_kernel.hpp"
#include "cli/progress_bar.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/gradient_flow.hpp"
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
  GramResult<Scalar> train;       ///< [n, n]
  GramResult<Scalar> validation;  ///< [n_validation, n]; empty without validation data.
  GramResult<Scalar> test;        ///< [n_test, n]
  Vector<double> test_variances;  ///< NNGP, [n_test]
};

template <typename Scalar>
GpGrams<Scalar> compute_grams(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                              const Interrupt& interrupt) {
  const bool validate = !options.regulariser;
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

  const GpKernel<Scalar> kernel(network, task, options.flip, gram_options);
  GpGrams<Scalar> grams;
  grams.train = kernel.gram(task.train, gram_options);
  before = std::exchange(now, n_validation * n);
  if (validate) {
    grams.validation = kernel.gram(*task.validation, task.train, gram_options);
    before += now;
  }
  now = n_test * n;
  grams.test = kernel.gram(task.test, task.train, gram_options);
  gram_options.kernels = Kernels::nngp;
  gram_options.progress = nullptr;
  grams.test_variances = kernel.diagonal(task.test, gram_options).nngp.col(0).template cast<double>();
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
    if (options_.kernels != Kernels::ntk) regress();
    if (options_.kernels != Kernels::nngp) flow();
    return std::move(predictions_);
  }

 private:
  struct Regulariser {
    double value;
    std::vector<gp::RegulariserScore> candidates;
    double noise_floor = 0;
  };

  Regulariser regulariser(const Matrix<Scalar>& train, const Matrix<Scalar>& validation) const {
    if (options_.regulariser) return {*options_.regulariser, {}};
    const auto criterion =
        task_.kind == TargetKind::classes ? gp::Criterion::accuracy : gp::Criterion::mean_squared_error;
    const auto selection =
        gp::select_regulariser(train, *task_.train.targets, validation, *task_.validation->targets,
                               gp::regulariser_grid(), criterion, options_.threads);
    interrupt_.check();
    return {selection.best.value(), selection.scores, selection.noise_floor};
  }

  void regress() {
    const Stopwatch watch;
    auto [value, candidates, noise_floor] = regulariser(grams_.train.nngp, grams_.validation.nngp);
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
         .candidates = std::move(candidates),
         .noise_floor = noise_floor});
  }

  void flow() {
    Stopwatch watch;
    auto [value, candidates, noise_floor] = regulariser(grams_.train.ntk, grams_.validation.ntk);
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
  return {.gram_seconds = gram_seconds,
          .predictions = Predictor<Scalar>(task, options, interrupt, std::move(grams)).run()};
}

template GpResult run_gp(const Network&, const GpTask<float>&, const GpOptions&, const Interrupt&);
template GpResult run_gp(const Network&, const GpTask<double>&, const GpOptions&, const Interrupt&);

}  // namespace widelimit::cli
