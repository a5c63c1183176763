#include "cli/gp/gp_predictions_csv.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "cli/output/text_parts.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/prediction_quality.hpp"

namespace widelimit::cli {
namespace {

class PredictionTable {
 public:
  PredictionTable(const PredictionFacts& info, const GpResult& result,
                  const std::optional<Matrix<double>>& targets)
      : facts_{info}, result_{result}, targets_{targets}, classes_{info.kind == TargetKind::classes} {
    if (classes_ && targets_) target_classes_ = gp::classes_of(*targets_);
    for (const GpPrediction& prediction : result_.predictions)
      observation_variances_.push_back(prediction.observation_variance());
    if (classes_)
      for (const GpPrediction& prediction : result_.predictions)
        predicted_classes_.push_back(gp::classes_of(prediction.probabilities));
  }

  [[nodiscard]] std::string csv() const {
    std::string text = heading();
    for (Index i = 0; i < result_.predictions.front().mean.rows(); ++i) add_row(text, i);
    return text;
  }

 private:
  /// What stands for output k in a heading: the class that it scores, the column that several have been read from, or
  /// its number.
  [[nodiscard]] std::string output_name(Index k, Index outputs) const {
    if (classes_) return class_name(outputs == 1 ? 1 : k);
    const bool named = outputs > 1 && facts_.targets != nullptr && !facts_.targets->empty();
    return named ? (*facts_.targets)[static_cast<std::size_t>(k)] : std::to_string(k);
  }

  /// Classes share one deviation.
  [[nodiscard]] Index deviations_of(const GpPrediction& prediction) const {
    return classes_ ? 1 : prediction.mean.cols();
  }

  [[nodiscard]] const std::string& class_name(Index c) const {
    return facts_.class_names[static_cast<std::size_t>(c)];
  }

  [[nodiscard]] std::string heading() const {
    std::string text = "index,id";
    if (targets_ && classes_) text += ",class";
    if (targets_ && !classes_)
      for (Index k = 0; k < targets_->cols(); ++k)
        text += "," + csv_field("target_" + output_name(k, targets_->cols()));
    for (const GpPrediction& prediction : result_.predictions) add_headings(text, prediction);
    return text + "\n";
  }

  void add_headings(std::string& text, const GpPrediction& prediction) const {
    const auto add = [&](const std::string& column) {
      text += "," + csv_field(prediction.name + "_" + column);
    };
    if (classes_) add("class");
    if (classes_) add("probability");
    for (const char* deviation : {"standard_deviation", "observation_deviation"})
      for (Index k = 0; k < deviations_of(prediction); ++k)
        add(deviations_of(prediction) == 1
                ? deviation
                : fmt::format("{}_{}", deviation, output_name(k, prediction.mean.cols())));
    if (!classes_)
      for (const int percent : gp::interval_percents)
        for (const char* end : {"lower", "upper"})
          for (Index k = 0; k < prediction.mean.cols(); ++k)
            add(fmt::format("{}_{}{}", end, percent,
                            prediction.mean.cols() == 1 ? "" : "_" + output_name(k, prediction.mean.cols())));
    for (Index c = 0; c < prediction.probabilities.cols(); ++c) add("probability_" + class_name(c));
    for (Index k = 0; k < prediction.mean.cols(); ++k) add("mean_" + output_name(k, prediction.mean.cols()));
  }

  void add_row(std::string& text, Index i) const {
    const auto row = static_cast<std::size_t>(i);
    fmt::format_to(std::back_inserter(text), "{},{}", i, csv_field(facts_.names[row]));
    if (targets_ && classes_) text += "," + csv_field(class_name(target_classes_[row]));
    if (targets_ && !classes_)
      for (Index k = 0; k < targets_->cols(); ++k) add_number(text, (*targets_)(i, k));
    for (std::size_t p = 0; p < result_.predictions.size(); ++p) {
      const GpPrediction& prediction = result_.predictions[p];
      const Matrix<double>& observed = observation_variances_[p];
      if (classes_) {
        const int predicted = predicted_classes_[p][row];
        text += "," + csv_field(class_name(predicted));
        add_number(text, prediction.probabilities(i, predicted));
      }
      for (Index k = 0; k < deviations_of(prediction); ++k)
        add_number(text, std::sqrt(prediction.variance(i, k)));
      for (Index k = 0; k < deviations_of(prediction); ++k) add_number(text, std::sqrt(observed(i, k)));
      if (!classes_) add_interval_ends(text, prediction, observed, i);
      for (Index c = 0; c < prediction.probabilities.cols(); ++c)
        add_number(text, prediction.probabilities(i, c));
      for (Index k = 0; k < prediction.mean.cols(); ++k) add_number(text, prediction.mean(i, k));
    }
    text += '\n';
  }

  /// Of the central intervals of an observation.
  static void add_interval_ends(std::string& text, const GpPrediction& prediction,
                                const Matrix<double>& observed, Index i) {
    for (const int percent : gp::interval_percents) {
      std::vector<std::pair<double, double>> intervals;
      for (Index k = 0; k < prediction.mean.cols(); ++k)
        intervals.push_back(prediction.law.interval(percent / 100.0, prediction.mean(i, k), observed(i, k)));
      for (const auto& interval : intervals) add_number(text, interval.first);
      for (const auto& interval : intervals) add_number(text, interval.second);
    }
  }

  static void add_number(std::string& text, double value) {
    fmt::format_to(std::back_inserter(text), ",{}", value);
  }

  const PredictionFacts& facts_;
  const GpResult& result_;
  const std::optional<Matrix<double>>& targets_;
  bool classes_;
  std::vector<int> target_classes_;
  std::vector<std::vector<int>> predicted_classes_;
  std::vector<Matrix<double>> observation_variances_;  ///< Of each prediction.
};

}  // namespace

std::string predictions_csv(const PredictionFacts& info, const GpResult& result,
                            const std::optional<Matrix<double>>& targets) {
  return PredictionTable(info, result, targets).csv();
}

}  // namespace widelimit::cli
