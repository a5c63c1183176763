#include "cli/model_scores.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* score_columns = "  {:<24} {:>7} {:>9} {:>11} {:>10} {:>8}\n";

Json or_null_score(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string percentage(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

}  // namespace

ModelScores scores_of(const std::string& name, const gp::ModelPrediction& prediction,
                      const Matrix<double>& targets) {
  ModelScores scores{name,
                     targets.rows(),
                     std::nullopt,
                     gp::mean_squared_error(prediction.mean, targets),
                     gp::negative_log_predictive_density(prediction.mean, prediction.variance,
                                                         prediction.noise_variance, targets),
                     std::nullopt};
  if (prediction.class_probabilities.size() == 0) return scores;
  scores.accuracy = gp::accuracy(prediction.mean, targets);
  scores.expected_calibration_error =
      gp::calibration(prediction.class_probabilities, gp::classes_of(targets)).expected_error;
  return scores;
}

gp::ModelPrediction with_amplitude_one(const gp::Model& model, const gp::ModelPrediction& prediction) {
  gp::ModelPrediction result{prediction.mean,
                             prediction.variance / model.amplitude(),
                             prediction.noise_variance / model.amplitude(),
                             {}};
  if (prediction.class_probabilities.size() > 0)
    result.class_probabilities =
        gp::class_probabilities(result.mean, result.variance.array() + result.noise_variance);
  return result;
}

std::optional<ModelScores> leave_one_out_scores(const gp::Model& model, const Matrix<double>& targets) {
  if (model.time() != gp::infinite_time) return std::nullopt;
  const gp::LeaveOneOut others = model.leave_one_out();
  // Variances of observations, without more noise.
  gp::ModelPrediction prediction{targets - others.residuals, others.variances, 0, {}};
  if (!model.class_names().empty())
    prediction.class_probabilities = gp::class_probabilities(prediction.mean, prediction.variance);
  return scores_of("leave-one-out", prediction, targets);
}

std::string scores_table(const std::vector<ModelScores>& scores) {
  std::string text =
      fmt::format(fmt::runtime(score_columns), "predictions", "inputs", "accuracy", "MSE", "NLPD", "ECE");
  for (const ModelScores& line : scores)
    text += fmt::format(
        fmt::runtime(score_columns), line.of, line.inputs, percentage(line.accuracy),
        fmt::format("{:.6g}", line.mean_squared_error),
        fmt::format("{:.4f}", line.negative_log_predictive_density),
        line.expected_calibration_error ? fmt::format("{:.4f}", *line.expected_calibration_error) : "-");
  return text;
}

Json to_json(const ModelScores& scores) {
  return {{"predictions", scores.of},
          {"inputs", scores.inputs},
          {"accuracy", or_null_score(scores.accuracy)},
          {"mean_squared_error", scores.mean_squared_error},
          {"negative_log_predictive_density", scores.negative_log_predictive_density},
          {"expected_calibration_error", or_null_score(scores.expected_calibration_error)}};
}

std::string model_text(const gp::Model& model) {
  const bool bayesian = model.kind() == gp::ModelKind::bayesian;
  std::string text = bayesian ? std::string("Bayesian posterior with the NNGP")
                              : fmt::format("networks trained for {} (NTK)",
                                            std::isinf(model.time()) ? "infinite time"
                                                                     : fmt::format("time {}", model.time()));
  text += fmt::format(": {} training inputs, {} outputs{}\namplitude {:.6g}, noise variance {:.6g}",
                      model.train_size(), model.outputs(), model.class_names().empty() ? "" : " of classes",
                      model.amplitude(), model.noise_variance());
  if (bayesian) text += fmt::format(", log marginal likelihood {:.6g}", model.log_marginal_likelihood());
  return text + "\n";
}

}  // namespace widelimit::cli
