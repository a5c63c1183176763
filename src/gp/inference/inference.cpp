#include "widelimit/gp/inference.hpp"

#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What a fit predicts for the test inputs, at one time after the other.
class TestPredictions {
 public:
  TestPredictions(const Fitter& fitter, const std::optional<Matrix<double>>& truth, Criterion criterion)
      : fitter_{fitter}, truth_{truth}, criterion_{criterion} {}

  /// At time i of `times`.
  [[nodiscard]] KernelPrediction at(const std::string& kernel, const std::vector<double>& times,
                                    std::size_t i, const Fit& fitted) const {
    KernelPrediction prediction = empty_prediction(kernel, times, i, fitted);
    for (const FittedOutputs& part : fitted.parts) add(prediction, part, *part.posteriors[i]);
    if (i == 0) {
      prediction.selections = fitted.selections;
      prediction.noise_floor = fitter_.accuracy().noise_floor();
      // The smallest regulariser has the largest condition number.
      prediction.condition_number = fitter_.accuracy().condition_number(prediction.regulariser.minCoeff());
    }
    finish(prediction);
    return prediction;
  }

 private:
  [[nodiscard]] KernelPrediction empty_prediction(const std::string& kernel, const std::vector<double>& times,
                                                  std::size_t i, const Fit& fitted) const {
    const Index outputs = fitter_.scale().outputs(), n_test = fitter_.grams().test_variances.size();
    KernelPrediction prediction{};
    prediction.name = kernel == "ntk" ? flow_name(i) : kernel;
    if (kernel == "ntk") prediction.time = times[i];
    prediction.regulariser = prediction.amplitude = prediction.noise_variance = Vector<double>(outputs);
    prediction.mean = prediction.variance = Matrix<double>(n_test, outputs);
    prediction.criterion = criterion_;
    prediction.class_calibration = fitted.class_calibration;
    prediction.law = fitted.law;
    return prediction;
  }

  void add(KernelPrediction& prediction, const FittedOutputs& part, const UnitPosterior& posterior) const {
    const Matrix<double> mean = posterior.mean();
    const Vector<double> variance = posterior.variance();
    const double lambda = posterior.lambda();
    for (std::size_t k = 0; k < part.outputs.size(); ++k) {
      const Index column = static_cast<Index>(k), output = part.outputs[k];
      const double amplitude = part.amplitudes(column), factor = fitter_.scale().factors()(output);
      prediction.regulariser(output) = part.regulariser;
      prediction.amplitude(output) = amplitude;
      prediction.noise_variance(output) = amplitude * lambda * (factor * factor);
      prediction.mean.col(output) = mean.col(column);
      prediction.variance.col(output) = (amplitude * (factor * factor)) * variance;
    }
    // Outputs are independent, so that the evidence of all is the sum of the parts' ones.
    if (const auto evidence = posterior.log_marginal_likelihood(part.amplitudes))
      prediction.log_marginal_likelihood =
          prediction.log_marginal_likelihood.value_or(0) + *evidence + log_weights(part.outputs.size());
    prediction.iterations = posterior.solution();
  }

  /// What the densities of targets lack that were multiplied by the factors.
  [[nodiscard]] double log_weights(std::size_t outputs) const {
    const Vector<double>& factors = fitter_.row_factors();
    return factors.size() == 0 ? 0 : static_cast<double>(outputs) * factors.array().log().sum();
  }

  void finish(KernelPrediction& prediction) const {
    const TargetScale& scale = fitter_.scale();
    prediction.mean = scale.restored(prediction.mean);
    // Densities of the targets in their own units: standardising divided each of the n targets
    // of an output by its factor.
    if (prediction.log_marginal_likelihood && !scale.is_identity())
      *prediction.log_marginal_likelihood -=
          static_cast<double>(fitter_.input_targets().rows()) * scale.factors().array().log().sum();
    if (fitter_.fits_logarithms()) {
      if (prediction.log_marginal_likelihood)
        *prediction.log_marginal_likelihood -= fitter_.input_targets().sum();
      take_from_logarithms(prediction.mean, prediction.variance, prediction.noise_variance,
                           prediction.law.scale);
    }
    const Matrix<double> observed = prediction.observation_variance();
    if (fitter_.problem().kind == TargetKind::classes)
      prediction.probabilities = prediction.class_calibration.probabilities(prediction.mean, observed.col(0));
    if (truth_)
      prediction.scores =
          prediction_scores(prediction.mean, observed, prediction.probabilities, *truth_, prediction.law);
  }

  const Fitter& fitter_;
  const std::optional<Matrix<double>>& truth_;
  Criterion criterion_;
};

}  // namespace

std::vector<KernelPrediction> infer(Problem problem, const std::optional<Matrix<double>>& test,
                                    const InferenceOptions& options, GramSources grams,
                                    const MakeSolver& make_solver) {
  require_rows(problem, "infer");
  FitRequest request = fit_request(problem, options.fit, options.kernels != Kernels::nngp);
  request.refits = options.refit;
  require_fit(request, Door::cpp, "infer");
  Stopwatch watch;
  std::map<std::string, std::vector<Selection>> chosen;
  if (options.refit) {
    // That there are validation targets was required with the request.
    if (!grams.joined) throw ArgumentError("infer: refit takes validation data, and the kernels of both");
    const auto joined = std::exchange(grams.joined, {});
    if (options.fit.chooses(problem)) {
      Fitter choosing(problem, options.fit, std::move(grams), make_solver);
      if (options.kernels != Kernels::ntk) chosen["nngp"] = choosing.select("nngp");
      if (options.kernels != Kernels::nngp) chosen["ntk"] = choosing.select("ntk");
    }
    grams = joined();
    problem.join_validation();
  }
  Fitter fitter(std::move(problem), options.fit, std::move(grams), make_solver);
  const TestPredictions at_test(fitter, test, options.fit.criterion);
  std::vector<KernelPrediction> predictions;
  const auto predict = [&](const std::string& kernel, const std::vector<double>& times, bool kernels_follow) {
    const Fit fitted = fitter.fit(kernel, times, kernels_follow, chosen[kernel]);
    for (std::size_t i = 0; i < times.size(); ++i) {
      check_stop(options.fit.stop);
      predictions.push_back(at_test.at(kernel, times, i, fitted));
      predictions.back().solve_seconds = watch.seconds();
      // The first prediction's time includes that of the fits, a later one has only its own.
      watch = Stopwatch();
    }
  };
  if (options.kernels != Kernels::ntk) predict("nngp", {infinite_time}, options.kernels != Kernels::nngp);
  if (options.kernels == Kernels::nngp) return predictions;
  std::vector<double> times{infinite_time};
  times.insert(times.end(), options.times.begin(), options.times.end());
  predict("ntk", times, false);
  return predictions;
}

std::string flow_name(std::size_t i) { return i == 0 ? "ntk" : "ntk_time" + std::to_string(i - 1); }

PredictionScores prediction_scores(const Matrix<double>& mean, const Matrix<double>& variances,
                                   const Matrix<double>& probabilities, const Matrix<double>& targets,
                                   const ObservationLaw& law) {
  PredictionScores scores{
      .accuracy = std::nullopt,
      .mean_squared_error = mean_squared_error(mean, targets),
      .negative_log_predictive_density = negative_log_predictive_density(mean, variances, targets, law),
      .expected_calibration_error = std::nullopt};
  if (probabilities.size() == 0) return scores;
  scores.accuracy = accuracy(classes_of(probabilities), classes_of(targets));
  scores.expected_calibration_error = calibration(probabilities, classes_of(targets)).expected_error;
  return scores;
}

}  // namespace widelimit::gp
