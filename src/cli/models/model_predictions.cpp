#include "cli/models/model_predictions.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/gp/gp_predictions_csv.hpp"

namespace widelimit::cli {
namespace {

/// "mean.npy" of the first prediction, "mean_ntk_time0.npy" of another.
std::string file_of(const char* array, std::size_t prediction) {
  return prediction == 0 ? fmt::format("{}.npy", array)
                         : fmt::format("{}_{}.npy", array, gp::flow_name(prediction));
}

GpPrediction kernel_prediction(const gp::Model& model, const gp::ModelPrediction& found,
                               const std::optional<Matrix<double>>& truth) {
  GpPrediction prediction{};
  prediction.regulariser = model.regulariser();
  prediction.amplitude = model.amplitude();
  prediction.noise_variance = found.noise_variance;
  if (truth)
    prediction.scores = gp::prediction_scores(found.mean, found.observation_variance(),
                                              found.class_probabilities, *truth, found.law);
  prediction.mean = found.mean;
  prediction.variance = found.variance;
  prediction.probabilities = found.class_probabilities;
  prediction.class_calibration = model.class_calibration();
  prediction.law = found.law;
  return prediction;
}

}  // namespace

std::vector<double> prediction_times(const gp::Model& model, const std::vector<double>& more) {
  std::vector<double> times{model.time()};
  times.insert(times.end(), more.begin(), more.end());
  return times;
}

std::string at_time_text(const gp::Model& model, double time) {
  if (time == model.time()) return "";
  return std::isinf(time) ? " at infinite time" : fmt::format(" at time {:.4g}", time);
}

GpResult kernel_predictions(const gp::Model& model, const std::vector<gp::ModelPrediction>& found,
                            const std::vector<double>& times, const std::optional<Matrix<double>>& truth,
                            double seconds) {
  const bool bayesian = model.kind() == gp::ModelKind::bayesian;
  GpResult result{.gram_seconds = 0, .predictions = {}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    GpPrediction prediction = kernel_prediction(model, found[i], truth);
    prediction.name = bayesian ? "nngp" : gp::flow_name(i);
    if (!bayesian) prediction.time = times[i];
    // All are made together.
    if (i == 0) prediction.solve_seconds = seconds;
    if (bayesian && model.solver() == gp::Solver::cholesky)
      prediction.log_marginal_likelihood = model.log_marginal_likelihood();
    result.predictions.push_back(std::move(prediction));
  }
  return result;
}

PredictionFacts facts_of(const gp::Model& model, std::string data, const std::vector<std::string>& names) {
  return {.network = model.network(),
          .data = std::move(data),
          .kind = model.class_names().empty() ? TargetKind::numbers : TargetKind::classes,
          .precision = model.is_float() ? Precision::float32 : Precision::float64,
          .names = names,
          .class_names = model.class_names(),
          .preprocessing = model.preprocessing()};
}

std::vector<std::string> prediction_file_names(std::size_t predictions) {
  std::vector<std::string> names{"predictions.csv", "results.json", "report.html"};
  for (std::size_t i = 0; i < predictions; ++i)
    for (const char* array : {"mean", "standard_deviation", "class_probabilities"})
      names.push_back(file_of(array, i));
  return names;
}

std::string write_model_predictions(OutputFolder& folder, const GpResult& result, const PredictionFacts& info,
                                    ReportHead head, const ReportTest& test, bool reports) {
  for (std::size_t i = 0; i < result.predictions.size(); ++i) {
    const GpPrediction& prediction = result.predictions[i];
    folder.write(file_of("mean", i), prediction.mean);
    folder.write(file_of("standard_deviation", i), Matrix<double>(prediction.variance.cwiseSqrt()));
    if (prediction.probabilities.size() > 0)
      folder.write(file_of("class_probabilities", i), prediction.probabilities);
  }
  folder.write("predictions.csv", predictions_csv(info, result, test.targets));
  const std::string results = results_json(info, result);
  folder.write("results.json", results);
  if (!reports) return results;
  head.amplitude = "that of the model";
  ReportPage page(std::move(head), test);
  page.add(info.network.name(), info, result, std::nullopt);
  folder.write("report.html", page.html());
  return results;
}

}  // namespace widelimit::cli
