#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/gp/gp_run.hpp"
#include "cli/plots/reliability_picture.hpp"
#include "widelimit/gp/prediction_quality.hpp"

namespace widelimit::cli {

/// How good some predictions are.
struct QualityLine {
  std::string of;  ///< E.g. "nngp", "test".
  Index inputs;
  gp::PredictionQuality quality;
};

/// The predictions for inputs with known targets, and what simple methods reach there.
struct TestQuality {
  std::vector<QualityLine> predictions;  ///< As many as results.
  std::vector<QualityLine> baselines = {};
  std::string note = {};  ///< For people: why a baseline is missing; else empty.
};

/// Of every prediction; the baselines are to be added.
[[nodiscard]] TestQuality quality_of(const GpResult& result, const Matrix<double>& targets);

/// The heading, and a line for each: scores of classes, or of numbers.
[[nodiscard]] std::string quality_table(const std::vector<QualityLine>& lines);

/// A line for each class with its recall, mean probability and area under the curve by every one of `lines`; empty for
/// numbers, and for more classes than people read.
[[nodiscard]] std::string class_table(const std::vector<QualityLine>& lines,
                                      const std::vector<std::string>& class_names);

/// "a simple method is better on the test data: logistic regression, log loss 0.210, nngp 0.284", of the best
/// baseline, if it has a lower log loss or mean squared error than every one of `predictions`; else empty.
[[nodiscard]] std::string better_baseline(const std::vector<QualityLine>& predictions,
                                          const std::vector<QualityLine>& baselines);

/// The same as a line, or nothing.
[[nodiscard]] std::string better_baseline_text(const std::vector<QualityLine>& predictions,
                                               const std::vector<QualityLine>& baselines);

/// Both tables, baselines included, whether one of them is better, and the note.
[[nodiscard]] std::string quality_text(const TestQuality& quality,
                                       const std::vector<std::string>& class_names);

/// The scores as results.json has them; what does not exist is null.
[[nodiscard]] nlohmann::ordered_json quality_json(const QualityLine& line,
                                                  const std::vector<std::string>& class_names);

/// The baselines, each with "name" and its scores.
[[nodiscard]] nlohmann::ordered_json baselines_json(const TestQuality& quality,
                                                    const std::vector<std::string>& class_names);

/// Throws DataError unless --reliability, if it is given, has what it draws: classes, and data with `known` targets.
void require_reliability(const std::filesystem::path& file, TargetKind kind, bool known);

/// Of probabilities [n, classes] with a name, by targets [n, outputs] of classes.
[[nodiscard]] ReliabilityCurve reliability_curve(const std::string& name, const Matrix<double>& probabilities,
                                                 const Matrix<double>& targets);

/// The picture of --reliability; nothing without a file. `of`: whose predictions.
void draw_reliability(const std::filesystem::path& file, const std::vector<ReliabilityCurve>& curves,
                      const std::string& of, std::stop_token stop);

/// The same tables for report.html.
[[nodiscard]] std::string quality_html(const TestQuality& quality,
                                       const std::vector<std::string>& class_names);

}  // namespace widelimit::cli
