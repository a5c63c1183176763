#include "widelimit/gp/fit.hpp"

#include <cmath>
#include <utility>

#include "gp/gram_sources/weighted_gram.hpp"
#include "gp/inference/observations.hpp"
#include "gp/inference/output_groups.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/known_noise.hpp"

namespace widelimit::gp {
namespace {

Matrix<double> multiplied(const Vector<double>& factors, Matrix<double> targets) {
  if (factors.size() > 0) targets = factors.asDiagonal() * targets;
  return targets;
}

/// Kernels of the distinct inputs, from those of all rows.
GramSources chosen(const std::optional<DistinctInputs>& inputs, GramSources grams) {
  if (!inputs || inputs->repeats() == 0) return grams;
  grams.train = chosen_gram(std::move(grams.train), inputs->rows, true);
  if (grams.validation) grams.validation = chosen_gram(std::move(grams.validation), inputs->rows, false);
  if (grams.test) grams.test = chosen_gram(std::move(grams.test), inputs->rows, false);
  return grams;
}

GramSources multiplied(const Vector<double>& factors, GramSources grams) {
  if (factors.size() == 0) return grams;
  grams.train = weighted_gram(std::move(grams.train), factors, true);
  if (grams.validation) grams.validation = weighted_gram(std::move(grams.validation), factors, false);
  if (grams.test) grams.test = weighted_gram(std::move(grams.test), factors, false);
  return grams;
}

/// The problem as it is fitted.
Problem transformed(Problem problem, const FitOptions& options) {
  problem.targets = fitted_targets(problem.targets, options);
  if (problem.validation && options.transform == TargetTransform::log)
    problem.validation = logarithms(*problem.validation, "validation");
  return problem;
}

}  // namespace

void Problem::join_validation() {
  Matrix<double> both(targets.rows() + validation->rows(), targets.cols());
  both << targets, *validation;
  targets = std::move(both);
  inputs = std::exchange(joined_inputs, std::nullopt);
  validation.reset();
}

/// Outputs to be fitted together, with the amplitude that their known noise implies.
struct Fitter::Group {
  OutputGroup outputs;
  std::optional<double> amplitude = {};
};

Fitter::Fitter(Problem problem, FitOptions options, GramSources grams, MakeSolver make_solver)
    : problem_{transformed(std::move(problem), options)},
      options_{std::move(options)},
      make_solver_{std::move(make_solver)},
      scale_{fit_scale(problem_.targets, problem_.kind, options_)},
      observations_{std::make_unique<const Observations>(problem_, scale_)},
      standardised_{multiplied(row_factors(), scale_.standardised(input_targets())),
                    grams.validation ? scale_.standardised(*problem_.validation) : Matrix<double>(),
                    problem_.apart(), observations_->left_out()},
      solver_options_{.criterion = options_.criterion,
                      .candidates = options_.candidates,
                      .times = {},
                      .needs_amplitudes = !options_.amplitude,
                      .keeps_posteriors = options_.keeps_posteriors,
                      .threads = options_.threads,
                      .residual = options_.residual,
                      .stop = options_.stop,
                      .progress = options_.progress} {
  for (double& candidate : solver_options_.candidates) candidate *= observations_->relative();
  grams_ = multiplied(row_factors(), chosen(problem_.inputs, std::move(grams)));
}

Fitter::~Fitter() = default;

const Matrix<double>& Fitter::input_targets() const { return observations_->means(); }
const Vector<double>& Fitter::row_factors() const { return observations_->factors(); }

std::unique_ptr<KernelSolver> Fitter::solver(const std::string& kernel, const std::vector<double>& times,
                                             bool kernels_follow) {
  solver_options_.times = times;
  return make_solver_(kernel, grams_, standardised_, solver_options_, kernels_follow);
}

std::vector<Selection> Fitter::select(const std::string& kernel) {
  return told(solver(kernel, {infinite_time}, true)->select());
}

/// In the units of the targets, and relative to the mean diagonal of all rows.
std::vector<Selection> Fitter::told(std::vector<Selection> selections) const {
  selections = in_units_of(scale_, std::move(selections), observations_->inputs());
  if (fits_logarithms()) selections = of_logarithms(problem_, input_targets(), std::move(selections));
  const double relative = observations_->relative();
  if (relative == 1) return selections;
  for (Selection& selection : selections) {
    const double best = selection.best.value();
    for (std::size_t i = 0; i < selection.scores.size(); ++i) {
      if (selection.scores[i].relative_regulariser == best)
        selection.best = RelativeRegulariser(options_.candidates[i]);
      selection.scores[i].relative_regulariser = options_.candidates[i];
    }
    selection.noise_floor /= relative;
    selection.gram.mean_diagonal *= relative;
  }
  return selections;
}

Fit Fitter::fit(const std::string& kernel, const std::vector<double>& times, bool kernels_follow,
                const std::vector<Selection>& chosen) {
  const auto solves = solver(kernel, times, kernels_follow);
  std::vector<Selection> selections = chosen;
  if (chosen.empty() && options_.chooses(problem_)) selections = told(solves->select());
  // A choice has computed the accuracy of the matrix on its way, unless that was another one; a model does not ask.
  if (chosen.empty() && !selections.empty())
    accuracy_ = selections.front().gram;
  else if (!options_.keeps_posteriors) {
    accuracy_ = solves->accuracy();
    accuracy_.mean_diagonal *= observations_->relative();
  }
  check_stop(options_.stop);
  const std::vector<Group> groups = groups_of(kernel, selections);
  Fit fitted{.parts = {}, .class_calibration = {}, .law = {}, .selections = std::move(selections)};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const OutputGroup& outputs = groups[g].outputs;
    fitted.parts.push_back({outputs.outputs,
                            outputs.regulariser,
                            solves->fit(outputs.outputs, outputs.regulariser * observations_->relative(),
                                        g + 1 == groups.size()),
                            {}});
    check_stop(options_.stop);
  }
  // Amplitudes and calibrations are those of the first time, which is infinite, for all times.
  for (std::size_t g = 0; g < groups.size(); ++g)
    fitted.parts[g].amplitudes = amplitudes_of(*fitted.parts[g].posteriors.front(), groups[g]);
  const FittedOutputs& first = fitted.parts.front();
  fitted.class_calibration = calibration_of(*first.posteriors.front(), first.amplitudes(0));
  fitted.law = law(fitted.parts);
  return fitted;
}

std::vector<Fitter::Group> Fitter::groups_of(const std::string& kernel,
                                             const std::vector<Selection>& selections) const {
  if (problem_.knows_noise()) return known_noise_groups(kernel);
  double given = 0;
  if (options_.noise) given = noise_variance(*options_.noise, 1);
  // The noise stays what it is said to be, whatever the kernel is multiplied with.
  if (options_.is_in_units_of_targets())
    given /= options_.amplitude.value_or(1) * grams_.train->as_operator(kernel)->diagonal().mean() *
             observations_->relative();
  std::vector<Group> groups;
  for (OutputGroup& outputs : output_groups(selections, given, scale_.outputs()))
    groups.push_back({std::move(outputs)});
  return groups;
}

/// Each output by itself: noise variances that are known are relative to an amplitude.
std::vector<Fitter::Group> Fitter::known_noise_groups(const std::string& kernel) const {
  const double diagonal = grams_.train->as_operator(kernel)->diagonal().mean();
  std::optional<Matrix<double>> gram;
  if (!options_.amplitude) gram = grams_.train->matrix(kernel).take();
  std::vector<Group> groups;
  for (Index c = 0; c < scale_.outputs(); ++c) {
    const double noise = problem_.noise_variances.mean() / (scale_.factors()(c) * scale_.factors()(c));
    const double amplitude = options_.amplitude
                                 ? *options_.amplitude
                                 : known_noise_amplitude(*gram, standardised_.train.col(c), noise,
                                                         options_.candidates, options_.threads);
    groups.push_back({{{c}, noise / (amplitude * diagonal)}, amplitude});
  }
  return groups;
}

Vector<double> Fitter::amplitudes_of(const UnitPosterior& posterior, const Group& group) const {
  const auto count = static_cast<Index>(group.outputs.outputs.size());
  if (group.amplitude) return Vector<double>::Constant(count, *group.amplitude);
  if (options_.amplitude) return Vector<double>::Constant(count, *options_.amplitude);
  if (options_.is_in_units_of_targets()) return Vector<double>::Ones(count);
  // Outputs of numbers have an amplitude each, classes have one.
  return posterior.amplitudes(standardised_.apart);
}

ClassCalibration Fitter::calibration_of(const UnitPosterior& posterior, double amplitude) const {
  if (problem_.kind == TargetKind::numbers || options_.amplitude || options_.is_in_units_of_targets())
    return {};
  const auto others = posterior.leave_one_out();
  if (!others) return {};
  return observations_->calibration(*others, amplitude, posterior.lambda()).calibration;
}

namespace {

/// Of all outputs, from their targets left out; empty where nothing is left out.
Vector<double> distances_of(const std::vector<FittedOutputs>& parts) {
  std::vector<double> distances;
  for (const FittedOutputs& part : parts) {
    // Factors of rows multiply residuals and deviations alike.
    const auto others = part.posteriors.front()->leave_one_out();
    if (!others) return {};
    for (Index k = 0; k < others->residuals.cols(); ++k)
      for (Index i = 0; i < others->residuals.rows(); ++i)
        distances.push_back(others->residuals(i, k) / std::sqrt(part.amplitudes(k) * others->variances(i)));
  }
  return Eigen::Map<const Vector<double>>(distances.data(), static_cast<Index>(distances.size()));
}

}  // namespace

/// Noise that is known is no multiple of the amplitude that was fitted beside it: its law is taken as normal.
ObservationLaw Fitter::law(const std::vector<FittedOutputs>& parts) const {
  const bool is_fitted = !options_.amplitude && !problem_.knows_noise() && !options_.is_in_units_of_targets();
  if (problem_.kind == TargetKind::classes) return {};
  const auto of_what_is_fitted = [&](ObservationLaw law) {
    law.of_logarithms = fits_logarithms();
    return law;
  };
  if (!is_fitted) return of_what_is_fitted({});
  // Fewer say nothing of tails, and less of the scale than the amplitude does.
  constexpr Index fewest = 30;
  if (options_.fits_tails)
    if (const Vector<double> distances = distances_of(parts);
        distances.size() >= fewest && distances.allFinite() && !distances.isZero(0))
      return of_what_is_fitted(ObservationLaw::of_left_out(distances));
  return of_what_is_fitted(
      ObservationLaw::of_fitted_amplitude(observations_->inputs(), !options_.targets_as_they_are));
}

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("the inference was stopped");
}

Matrix<double> fitted_targets(const Matrix<double>& targets, const FitOptions& options) {
  return options.transform == TargetTransform::log ? logarithms(targets, "training") : targets;
}

Matrix<double> standardised_targets(const Matrix<double>& targets, TargetKind kind,
                                    const FitOptions& options) {
  const Matrix<double> fitted = fitted_targets(targets, options);
  return fit_scale(fitted, kind, options).standardised(fitted);
}

TargetScale fit_scale(const Matrix<double>& targets, TargetKind kind, const FitOptions& options) {
  if (kind == TargetKind::classes || options.targets_as_they_are)
    return TargetScale::identity(targets.cols());
  if (options.is_in_units_of_targets()) return TargetScale::centre(targets);
  TargetScale scale = TargetScale::fit(targets);
  if (options.transform != TargetTransform::log || !options.fits_tails) return scale;
  // Where logarithms go on growing, targets explode.
  Matrix<double> range(2, targets.cols());
  range << targets.colwise().minCoeff(), targets.colwise().maxCoeff();
  return scale.within(std::move(range));
}

}  // namespace widelimit::gp
