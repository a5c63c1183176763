#include "widelimit/gp/inference.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "gp/gram_sources/weighted_gram.hpp"
#include "gp/inference/known_noise.hpp"
#include "gp/inference/output_groups.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/known_noise.hpp"
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

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("the inference was stopped");
}

/// Predictions with the kernels of one network: choice of the regulariser, fits, amplitudes, and predictions at each
/// time. infer() makes one and runs it.
class Inference {
 public:
  Inference(const InferenceTargets& targets, const InferenceOptions& options, GramSources grams,
            const MakeSolver& make_solver, SolverOptions solver_options)
      : targets_{targets},
        options_{options},
        grams_{std::move(grams)},
        make_solver_{make_solver},
        scale_{scale_of(targets.train, targets.kind, options.targets_as_they_are)},
        factors_{row_factors({options.noise_variances, options.weights})},
        standardised_{weighted(scale_.standardised(targets.train)),
                      grams_.validation ? scale_.standardised(*targets.validation) : Matrix<double>(),
                      targets.kind == TargetKind::numbers && targets.train.cols() > 1},
        solver_options_{std::move(solver_options)} {
    if (factors_.size() == 0) return;
    grams_.train = weighted_gram(std::move(grams_.train), factors_, true);
    grams_.test = weighted_gram(std::move(grams_.test), factors_, false);
    if (grams_.validation) grams_.validation = weighted_gram(std::move(grams_.validation), factors_, false);
  }

  std::vector<KernelPrediction> run() {
    if (options_.kernels != Kernels::ntk) predict("nngp", {infinite_time}, options_.kernels != Kernels::nngp);
    if (options_.kernels != Kernels::nngp) {
      std::vector<double> times{infinite_time};
      times.insert(times.end(), options_.times.begin(), options_.times.end());
      predict("ntk", times, false);
    }
    return std::move(predictions_);
  }

 private:
  void predict(const std::string& kernel, const std::vector<double>& times, bool kernels_follow) {
    Stopwatch watch;
    solver_options_.times = times;
    const auto solver = make_solver_(kernel, grams_, standardised_, solver_options_, kernels_follow);
    std::vector<Selection> selections;
    if (options_.chooses()) selections = solver->select();
    // A choice has computed the accuracy of the matrix on its way.
    const GramAccuracy gram = selections.empty() ? solver->accuracy() : selections.front().gram;
    check_stop(solver_options_.stop);
    const KnownNoise known = known_noise();
    const auto groups = known.groups.empty()
                            ? output_groups(selections, options_.regulariser.value_or(0), scale_.outputs())
                            : known.groups;
    std::vector<std::vector<std::unique_ptr<UnitPosterior>>> posteriors;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      posteriors.push_back(solver->fit(groups[g].outputs, groups[g].regulariser, g + 1 == groups.size()));
      check_stop(solver_options_.stop);
    }
    std::vector<Vector<double>> amplitudes;
    // Amplitudes and calibrations are those of the first time, which is infinite, for all times.
    for (std::size_t g = 0; g < groups.size(); ++g)
      amplitudes.push_back(known.groups.empty() ? amplitudes_of(*posteriors[g].front(), groups[g])
                                                : Vector<double>::Constant(1, known.amplitudes[g]));
    ClassCalibration calibration;
    for (std::size_t t = 0; t < times.size(); ++t) {
      check_stop(solver_options_.stop);
      KernelPrediction prediction = empty_prediction(kernel, t, times[t]);
      for (std::size_t g = 0; g < groups.size(); ++g)
        add(prediction, groups[g], *posteriors[g][t], amplitudes[g]);
      if (t == 0) calibration = calibration_of(*posteriors.front().front(), amplitudes.front());
      prediction.class_calibration = calibration;
      if (t == 0) {
        prediction.selections = in_units_of(scale_, selections, targets_.train.rows());
        prediction.noise_floor = gram.noise_floor();
        // The smallest regulariser has the largest condition number.
        prediction.condition_number = gram.condition_number(prediction.regulariser.minCoeff());
      }
      finish(prediction, watch);
      // The first prediction's time includes that of the fits, a later one has only its own.
      watch = Stopwatch();
    }
  }

  /// Each output by itself: noise variances that are known are relative to an amplitude.
  struct KnownNoise {
    std::vector<OutputGroup> groups;
    std::vector<double> amplitudes;
  };

  [[nodiscard]] KnownNoise known_noise() const {
    KnownNoise known;
    if (options_.noise_variances.size() == 0) return known;
    const double diagonal = grams_.train->as_operator("nngp")->diagonal().mean();
    std::optional<Matrix<double>> gram;
    if (!options_.amplitude) gram = grams_.train->matrix("nngp").take();
    for (Index c = 0; c < scale_.outputs(); ++c) {
      const double noise = options_.noise_variances.mean() / (scale_.factors()(c) * scale_.factors()(c));
      known.amplitudes.push_back(options_.amplitude
                                     ? *options_.amplitude
                                     : known_noise_amplitude(*gram, standardised_.train.col(c), noise,
                                                             options_.candidates, options_.threads));
      known.groups.push_back({{c}, noise / (known.amplitudes.back() * diagonal)});
    }
    return known;
  }

  [[nodiscard]] Matrix<double> weighted(Matrix<double> targets) const {
    if (factors_.size() > 0) targets = factors_.asDiagonal() * targets;
    return targets;
  }

  [[nodiscard]] Vector<double> amplitudes_of(const UnitPosterior& posterior, const OutputGroup& group) const {
    if (options_.amplitude)
      // Outputs of numbers have an amplitude each, classes have one.
      return Vector<double>::Constant(static_cast<Index>(group.outputs.size()), *options_.amplitude);
    return posterior.amplitudes(standardised_.apart);
  }

  /// That for classes, none for numbers; that at infinite time is taken for all times.
  [[nodiscard]] ClassCalibration calibration_of(const UnitPosterior& posterior,
                                                const Vector<double>& amplitudes) const {
    if (targets_.kind == TargetKind::numbers || options_.amplitude) return {};
    auto others = posterior.leave_one_out();
    if (!others) return {};
    if (factors_.size() > 0)
      others = single_observations(std::move(*others), factors_(representative_inputs(factors_.size())),
                                   posterior.lambda());
    return fit_class_calibration({others->residuals, amplitudes(0) * others->variances}, targets_.train)
        .calibration;
  }

  [[nodiscard]] KernelPrediction empty_prediction(const std::string& kernel, std::size_t i,
                                                  double time) const {
    const Index outputs = scale_.outputs(), n_test = grams_.test_variances.size();
    KernelPrediction prediction{};
    prediction.name = kernel == "ntk" ? flow_name(i) : kernel;
    if (kernel == "ntk") prediction.time = time;
    prediction.regulariser = prediction.amplitude = prediction.noise_variance = Vector<double>(outputs);
    prediction.mean = prediction.variance = Matrix<double>(n_test, outputs);
    prediction.criterion = options_.criterion;
    if (targets_.kind != TargetKind::classes)
      prediction.law = law_of_numbers(options_, targets_.train.rows());
    return prediction;
  }

  void add(KernelPrediction& prediction, const OutputGroup& group, const UnitPosterior& posterior,
           const Vector<double>& amplitudes) const {
    const Matrix<double> mean = posterior.mean();
    const Vector<double> variance = posterior.variance();
    const double lambda = posterior.lambda();
    for (std::size_t k = 0; k < group.outputs.size(); ++k) {
      const Index column = static_cast<Index>(k), output = group.outputs[k];
      const double amplitude = amplitudes(column), factor = scale_.factors()(output);
      prediction.regulariser(output) = group.regulariser;
      prediction.amplitude(output) = amplitude;
      prediction.noise_variance(output) = amplitude * lambda * (factor * factor);
      prediction.mean.col(output) = mean.col(column);
      prediction.variance.col(output) = (amplitude * (factor * factor)) * variance;
    }
    // Outputs are independent, so that the evidence of all is the sum of the groups' ones.
    if (const auto evidence = posterior.log_marginal_likelihood(amplitudes))
      prediction.log_marginal_likelihood =
          prediction.log_marginal_likelihood.value_or(0) + *evidence + log_weights(group.outputs.size());
    prediction.iterations = posterior.solution();
  }

  /// What the densities of targets lack that were multiplied by the factors.
  [[nodiscard]] double log_weights(std::size_t outputs) const {
    return factors_.size() == 0 ? 0 : static_cast<double>(outputs) * factors_.array().log().sum();
  }

  void finish(KernelPrediction& prediction, const Stopwatch& watch) {
    prediction.mean = scale_.restored(prediction.mean);
    // Densities of the targets in their own units: standardising divided each of the n targets
    // of an output by its factor.
    if (prediction.log_marginal_likelihood && !scale_.is_identity())
      *prediction.log_marginal_likelihood -=
          static_cast<double>(targets_.train.rows()) * scale_.factors().array().log().sum();
    const Matrix<double> observed = prediction.variance.rowwise() + prediction.noise_variance.transpose();
    if (targets_.kind == TargetKind::classes)
      prediction.probabilities = prediction.class_calibration.probabilities(prediction.mean, observed.col(0));
    if (targets_.test)
      prediction.scores = prediction_scores(prediction.mean, observed, prediction.probabilities,
                                            *targets_.test, prediction.law);
    prediction.solve_seconds = watch.seconds();
    predictions_.push_back(std::move(prediction));
  }

  const InferenceTargets& targets_;
  const InferenceOptions& options_;
  GramSources grams_;
  const MakeSolver& make_solver_;
  TargetScale scale_;
  Vector<double> factors_;  ///< Of the rows; empty if all are alike.
  SolverTargets standardised_;
  SolverOptions solver_options_;
  std::vector<KernelPrediction> predictions_;
};

}  // namespace

TargetScale scale_of(const Matrix<double>& targets, TargetKind kind, bool as_they_are) {
  return kind == TargetKind::classes || as_they_are ? TargetScale::identity(targets.cols())
                                                    : TargetScale::fit(targets);
}

void require_criterion(Criterion criterion, TargetKind kind) {
  if (criterion == Criterion::accuracy && kind == TargetKind::numbers)
    throw ArgumentError(
        "the criterion accuracy counts classes that are right, and the targets are numbers: choose by loo "
        "(leave-one-out), evidence, mse or nlpd");
}

namespace {

/// Variances are in the squared units of the targets: beyond these bounds they would be 0, or infinite.
void require_squares(const Vector<double>& deviations) {
  constexpr double least = 1e-150, most = 1e150;
  for (Index c = 0; c < deviations.size(); ++c)
    if (deviations(c) < least || deviations(c) > most)
      throw ArgumentError(fmt::format(
          "the training targets{} have a deviation of {:.6g}, whose square leaves the range of double: give "
          "them "
          "in other units, so that it is from {:g} to {:g}",
          deviations.size() > 1 ? fmt::format(" of output {} (from 0)", c) : "", deviations(c), least, most));
}

}  // namespace

void require_varying_targets(const Matrix<double>& targets, TargetKind kind, bool as_they_are,
                             const char* remedy) {
  if (kind == TargetKind::classes || as_they_are) {
    if (targets.isZero(0))
      throw ArgumentError(fmt::format(
          "the training targets are all 0, so that no amplitude of the kernels fits them; {}", remedy));
    return;
  }
  for (Index c = 0; c < targets.cols(); ++c)
    if (targets.col(c).minCoeff() == targets.col(c).maxCoeff())
      throw ArgumentError(fmt::format(
          "the training targets{} are all {}, so that no amplitude of the kernels fits them; {}",
          targets.cols() > 1 ? fmt::format(" of output {} (from 0)", c) : "", targets(0, c) + 0.0, remedy));
  require_squares(TargetScale::fit(targets).factors());
}

std::vector<KernelPrediction> infer(
    const InferenceTargets& targets, const InferenceOptions& options, GramSources grams,
    const MakeSolver& make_solver, const std::stop_token& stop,
    const std::function<void(const std::string& kernel, int passes, double residual)>& progress) {
  require_row_numbers({options.noise_variances, options.weights}, targets.train.rows(),
                      targets.kind == TargetKind::classes, "infer");
  if (options.noise_variances.size() + options.weights.size() > 0 && options.kernels != Kernels::nngp)
    throw ArgumentError(
        "infer: noise variances and weights of rows are for the NNGP: networks after training have none");
  if (options.noise_variances.size() > 0 && options.regulariser)
    throw ArgumentError("infer: expected noise variances or a regulariser, got both");
  SolverOptions solver_options{.criterion = options.criterion,
                               .candidates = options.candidates,
                               .times = {},
                               .needs_amplitudes = !options.amplitude,
                               .threads = options.threads,
                               .residual = options.residual,
                               .stop = stop,
                               .progress = progress};
  return Inference(targets, options, std::move(grams), make_solver, std::move(solver_options)).run();
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
