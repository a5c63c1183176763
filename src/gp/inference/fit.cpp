#include "widelimit/gp/fit.hpp"

#include <utility>

#include "gp/gram_sources/weighted_gram.hpp"
#include "gp/inference/known_noise.hpp"
#include "gp/inference/output_groups.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/known_noise.hpp"

namespace widelimit::gp {
namespace {

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("the inference was stopped");
}

Matrix<double> multiplied(const Vector<double>& factors, Matrix<double> targets) {
  if (factors.size() > 0) targets = factors.asDiagonal() * targets;
  return targets;
}

GramSources multiplied(const Vector<double>& factors, GramSources grams) {
  if (factors.size() == 0) return grams;
  grams.train = weighted_gram(std::move(grams.train), factors, true);
  if (grams.validation) grams.validation = weighted_gram(std::move(grams.validation), factors, false);
  if (grams.test) grams.test = weighted_gram(std::move(grams.test), factors, false);
  return grams;
}

}  // namespace

void Problem::join_validation() {
  Matrix<double> both(targets.rows() + validation->rows(), targets.cols());
  both << targets, *validation;
  targets = std::move(both);
  validation.reset();
}

/// Outputs to be fitted together, with the amplitude that their known noise implies.
struct Fitter::Group {
  OutputGroup outputs;
  std::optional<double> amplitude = {};
};

Fitter::Fitter(Problem problem, FitOptions options, GramSources grams, MakeSolver make_solver)
    : problem_{std::move(problem)},
      options_{std::move(options)},
      make_solver_{std::move(make_solver)},
      scale_{fit_scale(problem_.targets, problem_.kind, options_)},
      factors_{gp::row_factors({problem_.noise_variances, problem_.weights})},
      standardised_{multiplied(factors_, scale_.standardised(problem_.targets)),
                    grams.validation ? scale_.standardised(*problem_.validation) : Matrix<double>(),
                    problem_.apart()},
      solver_options_{.criterion = options_.criterion,
                      .candidates = options_.candidates,
                      .times = {},
                      .needs_amplitudes = !options_.amplitude,
                      .keeps_posteriors = options_.keeps_posteriors,
                      .threads = options_.threads,
                      .residual = options_.residual,
                      .stop = options_.stop,
                      .progress = options_.progress} {
  grams_ = multiplied(factors_, std::move(grams));
}

std::unique_ptr<KernelSolver> Fitter::solver(const std::string& kernel, const std::vector<double>& times,
                                             bool kernels_follow) {
  solver_options_.times = times;
  return make_solver_(kernel, grams_, standardised_, solver_options_, kernels_follow);
}

std::vector<Selection> Fitter::select(const std::string& kernel) {
  return in_units_of(scale_, solver(kernel, {infinite_time}, true)->select(), problem_.targets.rows());
}

Fit Fitter::fit(const std::string& kernel, const std::vector<double>& times, bool kernels_follow,
                const std::vector<Selection>& chosen) {
  const auto solves = solver(kernel, times, kernels_follow);
  std::vector<Selection> selections = chosen;
  if (chosen.empty() && options_.chooses(problem_))
    selections = in_units_of(scale_, solves->select(), problem_.targets.rows());
  // A choice has computed the accuracy of the matrix on its way, unless that was another one; a model does not ask.
  if (chosen.empty() && !selections.empty())
    accuracy_ = selections.front().gram;
  else if (!options_.keeps_posteriors)
    accuracy_ = solves->accuracy();
  check_stop(options_.stop);
  const std::vector<Group> groups = groups_of(kernel, selections);
  Fit fitted{.parts = {}, .class_calibration = {}, .law = law(), .selections = std::move(selections)};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const OutputGroup& outputs = groups[g].outputs;
    fitted.parts.push_back({outputs.outputs,
                            outputs.regulariser,
                            solves->fit(outputs.outputs, outputs.regulariser, g + 1 == groups.size()),
                            {}});
    check_stop(options_.stop);
  }
  // Amplitudes and calibrations are those of the first time, which is infinite, for all times.
  for (std::size_t g = 0; g < groups.size(); ++g)
    fitted.parts[g].amplitudes = amplitudes_of(*fitted.parts[g].posteriors.front(), groups[g]);
  const FittedOutputs& first = fitted.parts.front();
  fitted.class_calibration = calibration_of(*first.posteriors.front(), first.amplitudes(0));
  return fitted;
}

std::vector<Fitter::Group> Fitter::groups_of(const std::string& kernel,
                                             const std::vector<Selection>& selections) const {
  if (problem_.knows_noise()) return known_noise_groups(kernel);
  double given = 0;
  if (options_.noise) given = noise_variance(*options_.noise, 1);
  // The noise stays what it is said to be, whatever the kernel is multiplied with.
  if (options_.is_in_units_of_targets())
    given /= options_.amplitude.value_or(1) * grams_.train->as_operator(kernel)->diagonal().mean();
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
  auto others = posterior.leave_one_out();
  if (!others) return {};
  if (factors_.size() > 0)
    others = single_observations(std::move(*others), factors_(representative_inputs(factors_.size())),
                                 posterior.lambda());
  return fit_class_calibration({others->residuals, amplitude * others->variances}, problem_.targets)
      .calibration;
}

/// Noise that is known is no multiple of the amplitude that was fitted beside it: its law is taken as normal.
ObservationLaw Fitter::law() const {
  const bool is_fitted = !options_.amplitude && !problem_.knows_noise() && !options_.is_in_units_of_targets();
  if (problem_.kind == TargetKind::classes || !is_fitted) return {};
  return ObservationLaw::of_fitted_amplitude(problem_.targets.rows(), !options_.targets_as_they_are);
}

TargetScale fit_scale(const Matrix<double>& targets, TargetKind kind, const FitOptions& options) {
  if (kind == TargetKind::classes || options.targets_as_they_are)
    return TargetScale::identity(targets.cols());
  return options.is_in_units_of_targets() ? TargetScale::centre(targets) : TargetScale::fit(targets);
}

}  // namespace widelimit::gp
