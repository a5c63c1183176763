#include "cli/gp_posterior.hpp"

#include <utility>

#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {
namespace {

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

}  // namespace

GpPrediction prediction_of(Posterior posterior, const ChosenRegulariser& chosen, const GpTargets& targets,
                           gp::Criterion criterion, double seconds) {
  GpPrediction prediction{.name = std::move(posterior.name),
                          .time = posterior.time,
                          .regulariser = chosen.value,
                          .amplitude = posterior.amplitude,
                          .noise_variance = posterior.noise_variance,
                          .log_marginal_likelihood = posterior.log_marginal_likelihood,
                          .mean = std::move(posterior.mean),
                          .variance = std::move(posterior.variance),
                          .probabilities = {},
                          .scores = std::nullopt,
                          .solve_seconds = seconds,
                          .criterion = criterion,
                          .candidates = chosen.candidates,
                          .noise_floor = chosen.noise_floor,
                          .iterations = posterior.iterations};
  if (targets.kind == TargetKind::classes)
    prediction.probabilities =
        gp::class_probabilities(prediction.mean, prediction.variance.array() + prediction.noise_variance);
  if (targets.test) prediction.scores = scores_of(prediction, *targets.test, targets.kind);
  return prediction;
}

std::string flow_name(std::size_t i) { return i == 0 ? "ntk" : "ntk_time" + std::to_string(i - 1); }

}  // namespace widelimit::cli
