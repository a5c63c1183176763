#include "cli/models/model_scores.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/output/share_interval.hpp"
#include "cli/output/text_parts.hpp"
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

namespace {

ModelScores named_scores(const std::string& name, const Matrix<double>& mean, const Matrix<double>& variances,
                         const Matrix<double>& probabilities, const Matrix<double>& targets) {
  return {name, targets.rows(), gp::prediction_scores(mean, variances, probabilities, targets)};
}

}  // namespace

ModelScores scores_of(const std::string& name, const gp::ModelPrediction& prediction,
                      const Matrix<double>& targets) {
  return named_scores(name, prediction.mean, prediction.observation_variance(),
                      prediction.class_probabilities, targets);
}

gp::ModelPrediction with_amplitude_one(const gp::Model& model, const gp::ModelPrediction& prediction) {
  const Vector<double> shrink = model.amplitude().cwiseInverse();
  gp::ModelPrediction result{prediction.mean,
                             prediction.variance * shrink.asDiagonal(),
                             prediction.noise_variance.cwiseProduct(shrink),
                             {}};
  if (prediction.class_probabilities.size() > 0)
    result.class_probabilities = gp::class_probabilities(result.mean, result.observation_variance().col(0));
  return result;
}

std::optional<ModelScores> leave_one_out_scores(const gp::Model& model, const Matrix<double>& targets) {
  if (model.time() != gp::infinite_time) return std::nullopt;
  const gp::ModelLeaveOneOut others = model.leave_one_out();
  const Matrix<double> mean = targets - others.residuals;
  Matrix<double> probabilities;
  if (!model.class_names().empty())
    probabilities = model.class_calibration().probabilities(mean, others.variances.col(0));
  return named_scores("leave-one-out", mean, others.variances, probabilities, targets);
}

std::string scores_table(const std::vector<ModelScores>& scores) {
  std::string text =
      fmt::format(fmt::runtime(score_columns), "predictions", "inputs", "accuracy", "MSE", "NLPD", "ECE");
  for (const ModelScores& line : scores)
    text += fmt::format(fmt::runtime(score_columns), line.of, line.inputs, percentage(line.scores.accuracy),
                        fmt::format("{:.6g}", line.scores.mean_squared_error),
                        fmt::format("{:.4f}", line.scores.negative_log_predictive_density),
                        line.scores.expected_calibration_error
                            ? fmt::format("{:.4f}", *line.scores.expected_calibration_error)
                            : "-");
  return text;
}

Json to_json(const ModelScores& line) {
  const gp::PredictionScores& scores = line.scores;
  Json interval;
  if (scores.accuracy) {
    const ShareInterval found = share_interval(*scores.accuracy, line.inputs);
    interval = {found.low, found.high};
  }
  return {{"predictions", line.of},
          {"inputs", line.inputs},
          {"accuracy", or_null_score(scores.accuracy)},
          {"accuracy_interval", std::move(interval)},
          {"mean_squared_error", scores.mean_squared_error},
          {"negative_log_predictive_density", scores.negative_log_predictive_density},
          {"expected_calibration_error", or_null_score(scores.expected_calibration_error)}};
}

namespace {

std::string outputs_text(const gp::Model& model) {
  return model.class_names().empty() ? fmt::format("{} outputs", model.outputs())
                                     : fmt::format("{} classes", model.class_names().size());
}

}  // namespace

std::string model_text(const gp::Model& model) {
  const bool bayesian = model.kind() == gp::ModelKind::bayesian;
  std::string text = bayesian ? std::string("Bayesian posterior with the NNGP")
                              : fmt::format("networks trained for {} (NTK)",
                                            std::isinf(model.time()) ? "infinite time"
                                                                     : fmt::format("time {}", model.time()));
  constexpr const char *number = "{:.6g}", *numbers = "{:.6g} to {:.6g}";
  text += fmt::format(": {} training inputs, {}\namplitude {}, noise variance {}", model.train_size(),
                      outputs_text(model), shared_or_range(model.amplitude(), number, numbers),
                      shared_or_range(model.noise_variance(), number, numbers));
  if (bayesian) text += fmt::format(", log marginal likelihood {:.6g}", model.log_marginal_likelihood());
  return text + "\n";
}

}  // namespace widelimit::cli
