#include "cli/quality/test_quality.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/output/output_folder.hpp"
#include "cli/output/share_interval.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/report/html.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

using Json = nlohmann::ordered_json;
using TableRow = std::vector<std::string>;

/// More are for results.json.
/// A row a class is for reading; a terminal shows few of them.
constexpr std::size_t most_classes_in_page = 20, most_classes_in_text = 5;

std::string number_or_dash(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string percent_or_dash(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

TableRow heading_of(const QualityLine& line) {
  if (line.quality.classes) return {"predictions", "inputs", "accuracy", "log loss", "Brier", "AUC", "ECE"};
  TableRow row{"predictions", "inputs", "MSE", "R2", "NLPD"};
  for (const int percent : gp::interval_percents) row.push_back(fmt::format("in {} %", percent));
  return row;
}

TableRow row_of(const QualityLine& line) {
  TableRow row{line.of, std::to_string(line.inputs)};
  if (const auto& classes = line.quality.classes) {
    row.push_back(percent_or_dash(classes->accuracy));
    for (const std::optional<double>& score :
         {std::optional(classes->log_loss), std::optional(classes->brier_score), classes->area_under_curve,
          std::optional(classes->expected_calibration_error)})
      row.push_back(number_or_dash(score));
    return row;
  }
  const gp::NumbersQuality& numbers = *line.quality.numbers;
  row.push_back(fmt::format("{:.6g}", numbers.mean_squared_error));
  row.push_back(number_or_dash(numbers.determination));
  row.push_back(number_or_dash(numbers.negative_log_predictive_density));
  for (const double share : numbers.coverage) row.push_back(fmt::format("{:.1f} %", 100 * share));
  return row;
}

std::vector<TableRow> quality_rows(const std::vector<QualityLine>& lines) {
  std::vector<TableRow> rows{heading_of(lines.front())};
  for (const QualityLine& line : lines) rows.push_back(row_of(line));
  return rows;
}

/// Empty for numbers, and for too many classes.
std::vector<TableRow> class_rows(const std::vector<QualityLine>& lines,
                                 const std::vector<std::string>& class_names, std::size_t most) {
  if (lines.empty() || !lines.front().quality.classes || class_names.size() > most) return {};
  std::vector<TableRow> rows{{"class", "inputs", "share"}};
  for (const QualityLine& line : lines)
    for (const char* column : {"recall", "announced", "AUC", "error"})
      rows.front().push_back(line.of + " " + column);
  for (std::size_t c = 0; c < class_names.size(); ++c) {
    const gp::ClassQuality& first = lines.front().quality.classes->classes[c];
    TableRow row{class_names[c], std::to_string(first.inputs), percent_or_dash(first.share)};
    for (const QualityLine& line : lines) {
      const gp::ClassQuality& one = line.quality.classes->classes[c];
      row.push_back(percent_or_dash(one.recall));
      row.push_back(percent_or_dash(one.mean_probability));
      row.push_back(number_or_dash(one.area_under_curve));
      row.push_back(number_or_dash(one.calibration_error));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Columns as wide as what stands in them; the first one begins at the left.
std::string text_table(const std::vector<TableRow>& rows) {
  if (rows.empty()) return "";
  constexpr std::size_t widest_name = 40;
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const TableRow& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], letter_count(row[c]));
  std::string text;
  for (const TableRow& row : rows) {
    const std::string name = cut_utf8(row.front(), widest_name);
    const std::size_t width = std::min(widths.front(), widest_name), letters = letter_count(name);
    text += "  " + name + std::string(width > letters ? width - letters : 0, ' ');
    for (std::size_t c = 1; c < row.size(); ++c) text += fmt::format("  {:>{}}", row[c], widths[c]);
    text += '\n';
  }
  return text;
}

std::string html_table(const std::vector<TableRow>& rows) {
  if (rows.empty()) return "";
  std::string text = "<div class='wide'><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const char* cell = r == 0 ? "th" : "td";
    text += "<tr>";
    for (const std::string& part : rows[r]) text += fmt::format("<{0}>{1}</{0}>", cell, html_escaped(part));
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::vector<QualityLine> all_lines(const TestQuality& quality) {
  std::vector<QualityLine> lines = quality.predictions;
  lines.insert(lines.end(), quality.baselines.begin(), quality.baselines.end());
  return lines;
}

/// In tables of classes only predictions after training have columns.
std::vector<QualityLine> of_whole_training(const TestQuality& quality) {
  std::vector<QualityLine> lines;
  for (const QualityLine& line : quality.predictions)
    if (line.of.find("_time") == std::string::npos) lines.push_back(line);
  return lines;
}

/// By which a baseline is said to be better.
double error_of(const QualityLine& line) {
  return line.quality.classes ? line.quality.classes->log_loss : line.quality.numbers->mean_squared_error;
}

std::string error_text(const QualityLine& line) {
  return line.quality.classes ? fmt::format("{:.3f}", error_of(line)) : fmt::format("{:.4g}", error_of(line));
}

Json json_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::vector<std::string> shown_names(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(visible_text(name));
  return shown;
}

Json classes_json(const gp::ClassesQuality& classes, Index inputs,
                  const std::vector<std::string>& class_names) {
  const ShareInterval interval = share_interval(classes.accuracy, inputs);
  Json json{{"accuracy", classes.accuracy},
            {"accuracy_interval", {interval.low, interval.high}},
            {"log_loss", classes.log_loss},
            {"brier_score", classes.brier_score},
            {"area_under_curve", json_or_null(classes.area_under_curve)},
            {"expected_calibration_error", classes.expected_calibration_error},
            {"classes", Json::array()}};
  for (std::size_t c = 0; c < classes.classes.size(); ++c) {
    const gp::ClassQuality& one = classes.classes[c];
    json["classes"].push_back({{"class", class_names.at(c)},
                               {"inputs", one.inputs},
                               {"share", one.share},
                               {"mean_probability", one.mean_probability},
                               {"calibration_error", one.calibration_error},
                               {"recall", json_or_null(one.recall)},
                               {"area_under_curve", json_or_null(one.area_under_curve)}});
  }
  return json;
}

}  // namespace

TestQuality quality_of(const GpResult& result, const Matrix<double>& targets) {
  TestQuality quality{.predictions = {}};
  for (const GpPrediction& prediction : result.predictions)
    quality.predictions.push_back(
        {prediction.name, targets.rows(),
         gp::prediction_quality(prediction.mean, prediction.observation_variance(), prediction.probabilities,
                                targets, prediction.law)});
  return quality;
}

std::string quality_table(const std::vector<QualityLine>& lines) { return text_table(quality_rows(lines)); }

std::string class_table(const std::vector<QualityLine>& lines, const std::vector<std::string>& class_names) {
  return text_table(class_rows(lines, shown_names(class_names), most_classes_in_text));
}

std::string better_baseline(const std::vector<QualityLine>& predictions,
                            const std::vector<QualityLine>& baselines) {
  if (predictions.empty() || baselines.empty()) return "";
  const QualityLine& simple = *std::ranges::min_element(baselines, {}, error_of);
  const QualityLine& own = *std::ranges::min_element(predictions, {}, error_of);
  const std::string simple_error = error_text(simple), own_error = error_text(own);
  if (!(error_of(simple) < error_of(own)) || simple_error == own_error) return "";
  return fmt::format("a simple method is better on the test data: {}, {} {}, {} {}", simple.of,
                     simple.quality.classes ? "log loss" : "mean squared error", simple_error, own.of,
                     own_error);
}

std::string better_baseline_text(const std::vector<QualityLine>& predictions,
                                 const std::vector<QualityLine>& baselines) {
  const std::string text = better_baseline(predictions, baselines);
  return text.empty() ? "" : text + "\n";
}

std::string quality_text(const TestQuality& quality, const std::vector<std::string>& class_names) {
  return quality_table(all_lines(quality)) + class_table(of_whole_training(quality), class_names) +
         better_baseline_text(quality.predictions, quality.baselines) + quality.note;
}

Json quality_json(const QualityLine& line, const std::vector<std::string>& class_names) {
  if (line.quality.classes) return classes_json(*line.quality.classes, line.inputs, class_names);
  const gp::NumbersQuality& numbers = *line.quality.numbers;
  Json json{{"mean_squared_error", numbers.mean_squared_error},
            {"determination", json_or_null(numbers.determination)},
            {"negative_log_predictive_density", std::isinf(numbers.negative_log_predictive_density)
                                                    ? Json("infinity")
                                                    : Json(numbers.negative_log_predictive_density)}};
  for (std::size_t k = 0; k < gp::interval_percents.size(); ++k)
    json["coverage"][std::to_string(gp::interval_percents[k])] = numbers.coverage[k];
  return json;
}

Json baselines_json(const TestQuality& quality, const std::vector<std::string>& class_names) {
  Json json = Json::array();
  for (const QualityLine& line : quality.baselines) {
    Json one{{"name", line.of}};
    one.update(quality_json(line, class_names));
    json.push_back(std::move(one));
  }
  return json;
}

std::string quality_html(const TestQuality& quality, const std::vector<std::string>& class_names) {
  return html_table(quality_rows(all_lines(quality))) +
         html_table(class_rows(of_whole_training(quality), class_names, most_classes_in_page)) +
         (quality.note.empty() ? "" : "<p class='small'>" + html_escaped(quality.note) + "</p>\n");
}

void require_reliability(const std::filesystem::path& file, TargetKind kind, bool known) {
  if (file.empty() || (kind == TargetKind::classes && known)) return;
  throw DataError(fmt::format("--reliability takes classes, and validation or test data with targets; {}",
                              kind == TargetKind::numbers ? "the targets are numbers" : "there are none"));
}

ReliabilityCurve reliability_curve(const std::string& name, const Matrix<double>& probabilities,
                                   const Matrix<double>& targets) {
  return {name, gp::calibration(probabilities, gp::classes_of(targets))};
}

void draw_reliability(const std::filesystem::path& file, const std::vector<ReliabilityCurve>& curves,
                      const std::string& of, std::stop_token stop) {
  if (!file.empty()) draw_output_file(file, reliability_script(curves, of), std::move(stop));
}

}  // namespace widelimit::cli
