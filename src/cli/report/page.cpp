#include "cli/report/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include "cli/options/inference_options.hpp"
#include "cli/output/share_interval.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/report/html.hpp"
#include "cli/report/mistakes.hpp"
#include "cli/report/network_diagram.hpp"
#include "cli/report/page_style.hpp"
#include "cli/report/svg_plot.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/version.hpp"

namespace widelimit::cli {
namespace {

/// "91.67 (64.61 – 98.51) %"
std::string share_text(double share, Index count, int digits) {
  const ShareInterval interval = share_interval(share, count);
  return fmt::format("{:.{}f} ({:.{}f} – {:.{}f}) %", 100 * share, digits, 100 * interval.low, digits,
                     100 * interval.high, digits);
}

std::string kernel_title(const GpPrediction& prediction) {
  if (!prediction.time) return "NNGP";
  if (std::isinf(*prediction.time)) return "NTK";
  return fmt::format("NTK, time {:.4g}", *prediction.time);
}

/// Predictions that have figures of their own: those of gradient flow at finite times stand in the table only.
bool has_figures(const GpPrediction& prediction) { return !prediction.time || std::isinf(*prediction.time); }

std::string figure(const std::string& picture, const std::string& caption) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", picture, caption);
}

std::string row(const std::string& label, const GpPrediction& prediction, double gram_seconds, Index inputs) {
  const auto& scores = prediction.scores;
  std::string accuracy = "–";
  if (scores && scores->accuracy) accuracy = share_text(*scores->accuracy, inputs, 2);
  return fmt::format(
      "<tr><td>{}</td><td "
      "class='word'>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2f}</"
      "td><td>{:.2f}</td></tr>\n",
      html_escaped(label), kernel_title(prediction),
      prediction.regulariser.allFinite()
          ? shared_or_range(prediction.regulariser, "{:.2e}", "{:.2e} – {:.2e}")
          : "–",
      shared_or_range(prediction.amplitude, "{:.3g}", "{:.3g} – {:.3g}"), accuracy,
      scores ? squared_error_text(scores->mean_squared_error) : "–", gram_seconds, prediction.solve_seconds);
}

std::string confusion_figure(const PredictionFacts& info, const GpPrediction& prediction,
                             std::span<const int> truths) {
  // Cells of more classes cannot be seen, and would make the page slow.
  constexpr std::size_t most_classes = 100;
  if (info.class_names.size() > most_classes) return "";
  const auto matrix = gp::confusion_matrix(truths, gp::classes_of(prediction.probabilities),
                                           static_cast<int>(info.class_names.size()));
  return figure(confusion_picture(matrix, info.class_names),
                "Confusion: rows are true classes, columns predicted ones.");
}

std::string class_figures(const PredictionFacts& info, const GpPrediction& prediction,
                          const Matrix<double>& targets, std::string_view colour) {
  const auto truths = gp::classes_of(targets);
  const auto calibration = gp::calibration(prediction.probabilities, truths);
  return confusion_figure(info, prediction, truths) +
         figure(reliability_picture(calibration, colour),
                fmt::format(
                    "Calibration: right predictions among those of like confidence; on the dashed line, as "
                    "many as announced. Dots grow with their number. Expected calibration error {:.4f}.",
                    calibration.expected_error));
}

std::string number_figures(const GpPrediction& prediction, const Matrix<double>& targets,
                           std::string_view colour) {
  return figure(scatter_picture(prediction.mean, targets, colour), "Predicted means against true numbers.") +
         figure(coverage_picture(prediction, targets, colour),
                "Calibration: the share of true numbers in the central intervals of the predictions; on the "
                "dashed line, as many as announced.");
}

std::string prediction_html(const PredictionFacts& info, const GpPrediction& prediction,
                            const ReportTest& test, std::string_view colour) {
  const bool classes = info.kind == TargetKind::classes;
  return fmt::format("<h3>{}</h3>\n<div class='figures'>\n{}</div>\n<p class='before-cards'>{}</p>\n{}",
                     kernel_title(prediction),
                     classes ? class_figures(info, prediction, *test.targets, colour)
                             : number_figures(prediction, *test.targets, colour),
                     classes ? "Wrong, and most sure of it:"
                             : "Furthest from the truth, in standard deviations of an observation:",
                     mistakes_html(info, prediction, *test.targets, test.faces));
}

std::string prior_caption(const PredictionFacts& info, const GpPrior& prior) {
  if (!prior.second)
    return "Before any data: five functions of the prior (NNGP, scaled by the amplitude) at the first test "
           "inputs; the band is twice its standard deviation.";
  return fmt::format(
      "Before any data: five functions of the prior (NNGP, scaled by the amplitude) on the straight line "
      "from test input <code>{}</code> (0) to <code>{}</code> (1); the band is twice its standard deviation.",
      html_escaped(info.names[prior.first]), html_escaped(info.names[*prior.second]));
}

constexpr const char* class_quality_caption =
    "<p class='small'>Below the kernels, what simple methods reach from the same training data. Log loss: "
    "mean "
    "of -log P(true class). Brier: mean squared distance of the probabilities from the truth, all classes "
    "together. AUC: area under the ROC curve, of one class against the others, and the mean of all. ECE: "
    "expected calibration error. Announced: the mean probability of a class, which is its share where it is "
    "calibrated; error: its calibration error.</p>\n";

constexpr const char* number_quality_caption =
    "<p class='small'>Below the kernels, what simple methods reach from the same training data. R2: 1 for no "
    "error, 0 for that of the mean of the test targets. NLPD: negative log predictive density of an "
    "observation, all outputs together. In 50 %, ...: the share of true numbers in the central intervals of "
    "that probability.</p>\n";

std::string network_section(const std::string& label, const PredictionFacts& info, const GpResult& result,
                            const std::optional<GpPrior>& prior) {
  const auto network = nlohmann::ordered_json::parse(to_json(info.network));
  std::string text = fmt::format(
      "<h2>{}</h2>\n<figure>{}<figcaption>The network: σ² are variances of weights + "
      "biases.</figcaption></figure>\n<div class='figures'>\n",
      html_escaped(label), network_diagram(network));
  const std::string choice = choice_picture(result);
  if (!choice.empty())
    text += figure(choice, fmt::format("Choice of the regulariser by {}; the chosen ones are marked.",
                                       criterion_title(result.predictions.front().criterion)));
  if (info.learned != nullptr) {
    const gp::LearnedInputs& learned = *info.learned;
    text += figure(
        relevance_picture(channel_scales(learned.kept ? learned.map : learned.rejected, *info.channels)),
        fmt::format("Learned scales of the channels. Thirds of the training data predicted from the other "
                    "two have the "
                    "score {:.4f} with them and {:.4f} without: they are {}kept.",
                    learned.after, learned.before, learned.kept ? "" : "not "));
  }
  if (prior) text += figure(prior_picture(*prior), prior_caption(info, *prior));
  text += "</div>\n";
  if (info.quality != nullptr)
    text += "<h3>Scores on the test inputs</h3>\n" + quality_html(*info.quality, info.class_names) +
            (info.kind == TargetKind::classes ? class_quality_caption : number_quality_caption);
  return text;
}

std::string shapes_html(const nlohmann::ordered_json& shapes) {
  std::string text;
  for (const auto& [name, shape] : shapes.items())
    text += fmt::format("<dt>{}</dt><dd>[{}]</dd>", html_escaped(name),
                        fmt::join(shape.get<std::vector<std::int64_t>>(), ", "));
  return text;
}

std::string head_html(const ReportHead& head) {
  std::string text =
      fmt::format("<h2>What was run</h2>\n<pre><code>{}</code></pre>\n<dl><dt>data</dt><dd>{}</dd>",
                  html_escaped(head.command), html_escaped(head.data));
  text += shapes_html(head.shapes);
  for (const std::string& note : head.notes)
    text += fmt::format("<dt>note</dt><dd>{}</dd>", html_escaped(note));
  return text + fmt::format("<dt>amplitude</dt><dd>{}</dd><dt>program</dt><dd>widelimit {}</dd></dl>\n",
                            html_escaped(head.amplitude), version);
}

/// What a prediction that looks at no input reaches: that of the training targets, as the tables of scores have it. A
/// model does not keep it.
std::string beside_class(const std::optional<QualityLine>& simplest) {
  if (!simplest) return "";
  return fmt::format(" The most frequent class of the training data alone is right for {:.1f} %.",
                     100 * simplest->quality.classes->accuracy);
}

std::string beside_mean(const std::optional<QualityLine>& simplest) {
  if (!simplest) return "";
  return fmt::format(" The mean of the training targets alone has {:.4g}.",
                     std::sqrt(simplest->quality.numbers->mean_squared_error));
}

std::string better_words(const ReportLead& lead) {
  if (lead.better.empty()) return "";
  std::string sentence = html_escaped(lead.better);
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return fmt::format(" <b>{}.</b>", sentence);
}

/// How a lead names a result: what chose it, or that nothing did.
std::string choice_words(const ReportLead& lead) {
  if (lead.results == 1) return "";
  if (!lead.choice) return fmt::format(", the first of {} results, of which nothing chose one", lead.results);
  return fmt::format(", chosen among {} results by {}", lead.results, criterion_title(*lead.criterion));
}

std::string accuracy_lead(const ReportLead& lead, Index inputs) {
  return fmt::format("<p class='lead'><b>{}</b> of {} test inputs are predicted right by {}{}.{}{}</p>\n",
                     share_text(*lead.scores.accuracy, inputs, 1), inputs, html_escaped(lead.name),
                     choice_words(lead), beside_class(lead.simplest), better_words(lead));
}

std::string error_lead(const ReportLead& lead, Index inputs) {
  return fmt::format(
      "<p class='lead'>The root mean squared error over {} test inputs is <b>{:.4g}</b> for {}{}.{}{}</p>\n",
      inputs, std::sqrt(lead.scores.mean_squared_error), html_escaped(lead.name), choice_words(lead),
      beside_mean(lead.simplest), better_words(lead));
}

/// What the criterion measures of the regularisers that were chosen, larger for better ones.
std::optional<double> choice_of(const GpPrediction& prediction) {
  if (prediction.selections.empty()) return std::nullopt;
  double sum = 0;
  for (const gp::Selection& selection : prediction.selections)
    for (const gp::RegulariserScore& score : selection.scores)
      if (score.relative_regulariser == selection.best.value()) sum += score_by(score, prediction.criterion);
  if (!std::isfinite(sum)) return std::nullopt;
  return higher_is_better(prediction.criterion) ? sum : -sum;
}

/// Of a baseline that beats this prediction.
std::string better_than(const PredictionFacts& info, const GpPrediction& prediction) {
  if (info.quality == nullptr) return "";
  for (const QualityLine& line : info.quality->predictions)
    if (line.of == prediction.name) return better_baseline({line}, info.quality->baselines);
  return "";
}

constexpr const char* table_heading =
    "<tr><th>network</th><th "
    "class='word'>kernel</th><th>regulariser</th><th>amplitude</th><th>accuracy</th><th>MSE</th>"
    "<th>Gram s</th><th>solve s</th></tr>\n";

constexpr const char* table_caption =
    "<p class='small'>MSE: mean squared error of the outputs. In brackets: 95 % intervals "
    "(Wilson), from the number of test inputs. The Gram matrices of both kernels are computed "
    "together.</p>\n";

}  // namespace

void ReportPage::add_rows(const std::string& label, const PredictionFacts& info, const GpResult& result) {
  std::size_t number = 0;
  for (const GpPrediction& prediction : result.predictions) {
    rows_ += row(label, prediction, result.gram_seconds, prediction.mean.rows());
    const std::string_view colour = plot_colour(number++);
    const std::string name = fmt::format("{}, {}", label, kernel_title(prediction));
    if (prediction.scores) lead_by(name, prediction, better_than(info, prediction));
    if (prediction.scores && prediction.scores->accuracy)
      bars_.push_back({name, *prediction.scores->accuracy,
                       share_interval(*prediction.scores->accuracy, prediction.mean.rows()), colour});
  }
  if (examples_.empty()) examples_ = examples_html(info, test_);
}

void ReportPage::lead_by(const std::string& name, const GpPrediction& prediction, std::string better) {
  const int results = lead_ ? lead_->results + 1 : 1;
  const std::optional<double> choice = choice_of(prediction);
  if (!lead_ || (choice && (!lead_->choice || *choice > *lead_->choice)))
    lead_ = ReportLead{name, choice,       prediction.criterion, *prediction.scores,
                       0,    std::nullopt, std::move(better)};
  lead_->results = results;
}

void ReportPage::add(const std::string& label, const PredictionFacts& info, const GpResult& result,
                     const std::optional<GpPrior>& prior) {
  add_rows(label, info, result);
  sections_ += network_section(label, info, result, prior);
  if (lead_ && info.quality != nullptr && !info.quality->baselines.empty())
    lead_->simplest = info.quality->baselines.front();
  if (!test_.targets) {
    sections_ +=
        "<p>The targets of the test inputs are not known: there is nothing to compare predictions "
        "with.</p>\n";
    return;
  }
  std::size_t number = 0;
  for (const GpPrediction& prediction : result.predictions)
    if (has_figures(prediction)) sections_ += prediction_html(info, prediction, test_, plot_colour(number++));
}

std::string ReportPage::html() const {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n<meta name='viewport' "
      "content='width=device-width, initial-scale=1'>\n<title>widelimit gp: report</title>\n<link rel='icon' "
      "href='data:,'>\n<style>{}</style>\n</head>\n<body>\n{}\n<h1>Predictions of infinitely wide "
      "networks</h1>\n",
      page_style, diagram_definitions);
  const Index inputs = test_.targets ? test_.targets->rows() : 0;
  if (lead_) text += lead_->scores.accuracy ? accuracy_lead(*lead_, inputs) : error_lead(*lead_, inputs);
  text +=
      fmt::format("<div class='wide'><table>\n{}{}</table></div>\n{}", table_heading, rows_, table_caption);
  if (!bars_.empty())
    text += figure(accuracy_picture(bars_), "Accuracy on the test inputs, with 95 % intervals.");
  text += head_html(head_);
  if (!examples_.empty()) text += "<h3>The first test input of every class</h3>\n" + examples_;
  return text + sections_ + "</body>\n</html>\n";
}

}  // namespace widelimit::cli
