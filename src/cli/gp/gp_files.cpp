#include "cli/gp/gp_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/gp/gp_predictions_csv.hpp"
#include "cli/gp/grid_edge.hpp"
#include "cli/models/learning.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/plots/confusion_picture.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/version.hpp"

namespace widelimit::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The number that all outputs share, or a list of one for each.
Json shared_or_each(const Vector<double>& numbers) {
  if ((numbers.array() == numbers(0)).all()) return numbers(0);
  return std::vector<double>(numbers.data(), numbers.data() + numbers.size());
}

/// What is not a number becomes null.
Json candidates_json(const gp::Selection& selection, bool trained) {
  Json json = Json::array();
  for (const gp::RegulariserScore& candidate : selection.scores)
    json.push_back(
        {{"regulariser", candidate.relative_regulariser},
         {"accuracy", candidate.accuracy},
         {"mean_squared_error", candidate.mean_squared_error},
         {"negative_log_predictive_density", candidate.negative_log_predictive_density},
         {"log_marginal_likelihood", trained ? Json(nullptr) : Json(candidate.log_marginal_likelihood)},
         {"leave_one_out", candidate.leave_one_out}});
  for (std::size_t i = 0; i < selection.scores.size(); ++i)
    if (!selection.scores[i].unsolved.empty()) json[i]["unsolved"] = selection.scores[i].unsolved;
  return json;
}

/// What was chosen for all outputs, or for each.
void add_selections(Json& json, const GpPrediction& prediction) {
  json["criterion"] = criterion_name(prediction.criterion);
  if (prediction.selections.size() == 1) {
    const gp::Selection& selection = prediction.selections.front();
    if (const GridEdge edge = edge_of(selection.best.value(), selection.scores); edge != GridEdge::none)
      json["regulariser_at_edge"] = edge_name(edge);
    json["candidates"] = candidates_json(selection, prediction.time.has_value());
    return;
  }
  for (const gp::Selection& selection : prediction.selections) {
    json["regulariser_at_edge"].push_back(edge_name(edge_of(selection.best.value(), selection.scores)));
    json["candidates"].push_back(candidates_json(selection, prediction.time.has_value()));
  }
}

/// `quality`: its scores, or null.
Json prediction_json(const GpPrediction& prediction, const QualityLine* quality,
                     const std::vector<std::string>& class_names) {
  Json json;
  json["kernel"] = prediction.time ? "ntk" : "nngp";
  json["files"] = prediction.name;
  // JSON has no infinity.
  if (prediction.time)
    json["time"] = std::isinf(*prediction.time) ? Json("infinity") : Json(*prediction.time);
  // A model that was kept does not know it.
  if (prediction.regulariser.allFinite()) json["regulariser"] = shared_or_each(prediction.regulariser);
  json["amplitude"] = shared_or_each(prediction.amplitude);
  if (prediction.probabilities.size() > 0) {
    const gp::ClassCalibration& calibration = prediction.class_calibration;
    json["probability_scale"] = calibration.scale;
    json["probability_shifts"] = std::vector<double>(calibration.shifts.begin(), calibration.shifts.end());
  }
  json["noise_variance"] = shared_or_each(prediction.noise_variance);
  if (prediction.law.of_logarithms) json["fitted"] = "logarithms of the targets";
  if (!prediction.law.is_normal()) json["degrees_of_freedom"] = prediction.law.degrees_of_freedom;
  if (prediction.log_marginal_likelihood)
    json["log_marginal_likelihood"] = *prediction.log_marginal_likelihood;
  if (const auto& scores = prediction.scores) {
    json["accuracy"] = or_null(scores->accuracy);
    json["mean_squared_error"] = scores->mean_squared_error;
  }
  if (quality != nullptr) json.update(quality_json(*quality, class_names));
  json["solve_seconds"] = prediction.solve_seconds;
  if (const auto& iterations = prediction.iterations) {
    json["passes"] = iterations->passes;
    json["relative_residual"] = iterations->relative_residual;
  }
  if (prediction.noise_floor > 0 || !prediction.selections.empty())
    json["smallest_reliable_regulariser"] = prediction.noise_floor;
  if (prediction.condition_number > 0) json["condition_number"] = prediction.condition_number;
  if (!prediction.selections.empty()) add_selections(json, prediction);
  return json;
}

}  // namespace

std::string results_json(const PredictionFacts& info, const GpResult& result) {
  Json json;
  json["widelimit"] = version;
  json["data"] = info.data;
  if (!info.class_names.empty()) json["classes"] = info.class_names;
  json["targets"] = info.kind == TargetKind::classes ? "classes" : "numbers";
  json["precision"] = to_string(info.precision);
  json["preprocessing"] = gp::to_string(info.preprocessing.kind());
  if (!info.columns.is_null()) json["columns"] = info.columns;
  if (!info.missing.is_null()) json["missing"] = info.missing;
  if (!info.unknown.is_null()) json["unknown"] = info.unknown;
  if (info.automatic != nullptr) json["automatic"] = automatic_json(*info.automatic);
  if (info.learned != nullptr) json["learned"] = learned_json(*info.learned, *info.channels);
  json["gram_seconds"] = result.gram_seconds;
  for (std::size_t i = 0; i < result.predictions.size(); ++i) {
    const GpPrediction& prediction = result.predictions[i];
    if (prediction.log_marginal_likelihood)
      json["log_marginal_likelihood"] = *prediction.log_marginal_likelihood;
    const QualityLine* quality = info.quality == nullptr ? nullptr : &info.quality->predictions.at(i);
    json["results"].push_back(prediction_json(prediction, quality, info.class_names));
  }
  if (info.quality != nullptr && !info.quality->baselines.empty())
    json["baselines"] = baselines_json(*info.quality, info.class_names);
  json["network"] = Json::parse(to_json(info.network));
  return json.dump(1) + "\n";
}

std::vector<std::string> gp_file_names(const gp::InferenceOptions& options) {
  std::vector<std::string> names{"predictions.csv", "results.json"};
  for (const std::string& prediction : prediction_names(options)) {
    names.push_back("mean_" + prediction + ".npy");
    names.push_back("variance_" + prediction + ".npy");
    names.push_back("confusion_" + prediction + ".png");
  }
  return names;
}

void write_gp_files(OutputFolder& folder, const std::string& place, const PredictionFacts& info,
                    const GpResult& result, const std::optional<Matrix<double>>& test_targets) {
  for (const GpPrediction& prediction : result.predictions) {
    folder.write(place + "mean_" + prediction.name + ".npy", prediction.mean);
    folder.write(place + "variance_" + prediction.name + ".npy", prediction.variance);
  }
  folder.write(place + "predictions.csv", predictions_csv(info, result, test_targets));
  folder.write(place + "results.json", results_json(info, result));
}

void draw_gp_pictures(OutputFolder& folder, const std::string& place, Gnuplot& gnuplot,
                      const PredictionFacts& info, const GpResult& result,
                      const std::optional<Matrix<double>>& test_targets) {
  if (info.kind != TargetKind::classes || !test_targets) return;
  const int classes = std::max(2, static_cast<int>(test_targets->cols()));
  for (const GpPrediction& prediction : result.predictions)
    folder.draw(place + "confusion_" + prediction.name + ".png",
                confusion_script(gp::confusion_matrix(gp::classes_of(*test_targets),
                                                      gp::classes_of(prediction.probabilities), classes),
                                 fmt::format("{}, {}: {:.2f} % right", info.network.name(), prediction.name,
                                             100 * *prediction.scores->accuracy),
                                 info.class_names),
                gnuplot);
}

}  // namespace widelimit::cli
