#include "cli/gp_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/confusion_picture.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/version.hpp"

namespace widelimit::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json prediction_json(const GpPrediction& prediction) {
  Json json;
  json["kernel"] = prediction.time ? "ntk" : "nngp";
  json["files"] = prediction.name;
  // JSON has no infinity.
  if (prediction.time)
    json["time"] = std::isinf(*prediction.time) ? Json("infinity") : Json(*prediction.time);
  json["regulariser"] = prediction.regulariser;
  json["amplitude"] = prediction.amplitude;
  json["noise_variance"] = prediction.noise_variance;
  if (prediction.log_marginal_likelihood)
    json["log_marginal_likelihood"] = *prediction.log_marginal_likelihood;
  if (const auto& scores = prediction.scores) {
    json["accuracy"] = or_null(scores->accuracy);
    json["mean_squared_error"] = scores->mean_squared_error;
    json["negative_log_predictive_density"] = scores->negative_log_predictive_density;
    json["expected_calibration_error"] = or_null(scores->expected_calibration_error);
  }
  json["solve_seconds"] = prediction.solve_seconds;
  if (!prediction.candidates.empty()) json["smallest_reliable_regulariser"] = prediction.noise_floor;
  for (const gp::RegulariserScore& candidate : prediction.candidates)
    json["validation"].push_back(
        {{"regulariser", candidate.relative_regulariser},
         {"accuracy", candidate.above_noise ? Json(candidate.accuracy) : Json(nullptr)},
         {"mean_squared_error", candidate.above_noise ? Json(candidate.mean_squared_error) : Json(nullptr)}});
  return json;
}

std::string results_json(const GpRunInfo& info, const GpResult& result) {
  Json json;
  json["widelimit"] = version;
  json["data"] = info.data;
  json["targets"] = info.kind == TargetKind::classes ? "classes" : "numbers";
  json["precision"] = to_string(info.precision);
  json["gram_seconds"] = result.gram_seconds;
  for (const GpPrediction& prediction : result.predictions) {
    if (prediction.log_marginal_likelihood)
      json["log_marginal_likelihood"] = *prediction.log_marginal_likelihood;
    json["results"].push_back(prediction_json(prediction));
  }
  json["network"] = Json::parse(to_json(info.network));
  return json.dump(1) + "\n";
}

/// One row a test input: the target, then class, variance and means by each prediction.
class PredictionTable {
 public:
  PredictionTable(const GpRunInfo& info, const GpResult& result, const std::optional<Matrix<double>>& targets)
      : result_{result}, targets_{targets}, classes_{info.kind == TargetKind::classes} {
    if (classes_ && targets_) target_classes_ = gp::classes_of(*targets_);
    if (classes_)
      for (const GpPrediction& prediction : result_.predictions)
        predicted_classes_.push_back(gp::classes_of(prediction.mean));
  }

  [[nodiscard]] std::string csv() const {
    std::string text = heading();
    for (Index i = 0; i < result_.predictions.front().mean.rows(); ++i) add_row(text, i);
    return text;
  }

 private:
  [[nodiscard]] std::string heading() const {
    std::string text = "index";
    if (targets_ && classes_) text += ",class";
    if (targets_ && !classes_)
      for (Index k = 0; k < targets_->cols(); ++k) text += fmt::format(",target_{}", k);
    for (const GpPrediction& prediction : result_.predictions) {
      if (classes_) text += fmt::format(",{}_class", prediction.name);
      text += fmt::format(",{}_variance", prediction.name);
      for (Index k = 0; k < prediction.mean.cols(); ++k)
        text += fmt::format(",{}_mean_{}", prediction.name, k);
    }
    return text + "\n";
  }

  void add_row(std::string& text, Index i) const {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{}", i);
    if (targets_ && classes_) fmt::format_to(out, ",{}", target_classes_[static_cast<std::size_t>(i)]);
    if (targets_ && !classes_)
      for (Index k = 0; k < targets_->cols(); ++k) fmt::format_to(out, ",{:.17g}", (*targets_)(i, k));
    for (std::size_t p = 0; p < result_.predictions.size(); ++p) {
      const GpPrediction& prediction = result_.predictions[p];
      if (classes_) fmt::format_to(out, ",{}", predicted_classes_[p][static_cast<std::size_t>(i)]);
      fmt::format_to(out, ",{:.17g}", prediction.variance(i));
      for (Index k = 0; k < prediction.mean.cols(); ++k)
        fmt::format_to(out, ",{:.17g}", prediction.mean(i, k));
    }
    text += '\n';
  }

  const GpResult& result_;
  const std::optional<Matrix<double>>& targets_;
  bool classes_;
  std::vector<int> target_classes_;
  std::vector<std::vector<int>> predicted_classes_;
};

}  // namespace

std::vector<std::string> gp_file_names(const GpOptions& options) {
  std::vector<std::string> names{"predictions.csv", "results.json"};
  for (const std::string& prediction : prediction_names(options)) {
    names.push_back("mean_" + prediction + ".npy");
    names.push_back("variance_" + prediction + ".npy");
    names.push_back("confusion_" + prediction + ".png");
  }
  return names;
}

void write_gp_files(OutputFolder& folder, const std::string& place, const GpRunInfo& info,
                    const GpResult& result, const std::optional<Matrix<double>>& test_targets) {
  for (const GpPrediction& prediction : result.predictions) {
    folder.write(place + "mean_" + prediction.name + ".npy", prediction.mean);
    folder.write(place + "variance_" + prediction.name + ".npy", prediction.variance);
  }
  folder.write(place + "predictions.csv", PredictionTable(info, result, test_targets).csv());
  folder.write(place + "results.json", results_json(info, result));
}

void draw_gp_pictures(OutputFolder& folder, const std::string& place, Gnuplot& gnuplot, const GpRunInfo& info,
                      const GpResult& result, const std::optional<Matrix<double>>& test_targets) {
  if (info.kind != TargetKind::classes || !test_targets) return;
  const int classes = std::max(2, static_cast<int>(test_targets->cols()));
  for (const GpPrediction& prediction : result.predictions)
    folder.draw(place + "confusion_" + prediction.name + ".png",
                confusion_script(gp::confusion_matrix(gp::classes_of(*test_targets),
                                                      gp::classes_of(prediction.mean), classes),
                                 fmt::format("{}, {}: {:.2f} % right", info.network.name(), prediction.name,
                                             100 * *prediction.scores->accuracy)),
                gnuplot);
}

}  // namespace widelimit::cli
