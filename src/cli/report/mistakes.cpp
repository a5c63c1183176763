#include "cli/report/mistakes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/report/html.hpp"
#include "cli/report/png.hpp"

namespace widelimit::cli {
namespace {

constexpr std::size_t shown_mistakes = 10;

/// A wrong prediction.
struct Mistake {
  std::size_t input;
  int truth;
  int predicted;
  double probability;        ///< Of the predicted class.
  double truth_probability;  ///< Of the true one.
};

std::vector<Mistake> mistakes_of(const GpPrediction& prediction, const Matrix<double>& targets) {
  const auto truths = gp::classes_of(targets), predicted = gp::classes_of(prediction.probabilities);
  std::vector<Mistake> mistakes;
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto row = static_cast<Index>(i);
    if (truths[i] != predicted[i])
      mistakes.push_back({i, truths[i], predicted[i], prediction.probabilities(row, predicted[i]),
                          prediction.probabilities(row, truths[i])});
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.probability > b.probability; });
  return mistakes;
}

/// The beginning of a text; reviews come with tags for new lines.
std::string text_html(std::string text) {
  constexpr std::size_t longest = 420;
  constexpr std::string_view tag = "<br />";
  for (std::size_t at = text.find(tag); at != std::string::npos; at = text.find(tag, at))
    text.replace(at, tag.size(), " ");
  return html_escaped(cut_utf8(text, longest));
}

/// A test input as people see it: its picture, the beginning of its text, or nothing.
std::string face_html(const GpFaces& faces, std::size_t i) {
  if (i < faces.texts.size()) return fmt::format("<blockquote>{}</blockquote>", text_html(faces.texts[i]));
  if (faces.pictures.size() == 0) return "";
  const auto& shape = faces.pictures.shape();
  const std::size_t size = shape[1] * shape[2] * shape[3];
  return fmt::format("<img alt='test input {}' width='96' height='{}' src='{}'>", i, 96 * shape[1] / shape[2],
                     png_data_uri({faces.pictures.data() + i * size, size}, shape[1], shape[2]));
}

std::string card(const Mistake& mistake, const PredictionFacts& info, const GpFaces& faces) {
  const auto name_of = [&](int c) { return html_escaped(info.class_names[static_cast<std::size_t>(c)]); };
  return fmt::format(
      "<div class='card'>{}<div><b>{}</b> taken for <b class='wrong'>{}</b></div><div "
      "class='small'>{:.1f}&nbsp;% "
      "sure<br>of the true class {:.1f}&nbsp;%</div><div class='id'>{}</div></div>\n",
      face_html(faces, mistake.input), name_of(mistake.truth), name_of(mistake.predicted),
      100 * mistake.probability, 100 * mistake.truth_probability, html_escaped(info.names[mistake.input]));
}

std::string class_mistakes(const PredictionFacts& info, const GpPrediction& prediction,
                           const Matrix<double>& targets, const GpFaces& faces) {
  const auto mistakes = mistakes_of(prediction, targets);
  if (mistakes.empty()) return "<p>No test input is predicted wrong.</p>\n";
  const std::size_t count = std::min(shown_mistakes, mistakes.size());
  std::string text = fmt::format("<div class='cards{}'>\n", faces.texts.empty() ? "" : " texts");
  for (std::size_t i = 0; i < count; ++i) text += card(mistakes[i], info, faces);
  return text + "</div>\n";
}

/// Largest distance of an output from its target, in standard deviations of an observation; of logarithms where these
/// were fitted.
double standard_distance(const GpPrediction& prediction, const Matrix<double>& observed,
                         const Matrix<double>& targets, Index i) {
  double largest = 0;
  for (Index k = 0; k < targets.cols(); ++k)
    largest = std::max(
        largest, std::abs(prediction.law.distance(targets(i, k), prediction.mean(i, k), observed(i, k))));
  return largest;
}

std::string numbers_of(const Matrix<double>& matrix, Index row) {
  constexpr Index most = 6;
  std::string text;
  for (Index k = 0; k < std::min(most, matrix.cols()); ++k)
    text += fmt::format("{}{:.4g}", k == 0 ? "" : ", ", matrix(row, k));
  return matrix.cols() > most ? text + ", …" : text;
}

std::string number_mistakes(const PredictionFacts& info, const GpPrediction& prediction,
                            const Matrix<double>& targets) {
  const Matrix<double> observed = prediction.observation_variance(), deviations = observed.cwiseSqrt();
  const auto distance = [&](Index i) { return standard_distance(prediction, observed, targets, i); };
  std::vector<Index> order(static_cast<std::size_t>(targets.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return distance(a) > distance(b); });
  std::string text =
      "<table><tr><th>input</th><th>target</th><th>predicted</th><th>standard deviation</th><th>off "
      "by</th></tr>\n";
  for (std::size_t i = 0; i < std::min(shown_mistakes, order.size()); ++i)
    text += fmt::format(
        "<tr><td class='id'>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2f} deviations</td></tr>\n",
        html_escaped(info.names[static_cast<std::size_t>(order[i])]), numbers_of(targets, order[i]),
        numbers_of(prediction.mean, order[i]), numbers_of(deviations, order[i]), distance(order[i]));
  return text + "</table>\n";
}

}  // namespace

std::string mistakes_html(const PredictionFacts& info, const GpPrediction& prediction,
                          const Matrix<double>& targets, const GpFaces& faces) {
  return info.kind == TargetKind::classes ? class_mistakes(info, prediction, targets, faces)
                                          : number_mistakes(info, prediction, targets);
}

std::string examples_html(const PredictionFacts& info, const ReportTest& test) {
  constexpr std::size_t most_classes = 20;
  const bool has_faces = test.faces.pictures.size() > 0 || !test.faces.texts.empty();
  if (!has_faces || !test.targets || info.class_names.empty() || info.class_names.size() > most_classes)
    return "";
  const auto truths = gp::classes_of(*test.targets);
  std::string text = fmt::format("<div class='cards{}'>\n", test.faces.texts.empty() ? "" : " texts");
  for (std::size_t c = 0; c < info.class_names.size(); ++c) {
    const auto found = std::find(truths.begin(), truths.end(), static_cast<int>(c));
    if (found == truths.end()) continue;
    text += fmt::format("<div class='card'>{}<div>{}</div></div>\n",
                        face_html(test.faces, static_cast<std::size_t>(found - truths.begin())),
                        html_escaped(info.class_names[c]));
  }
  return text + "</div>\n";
}

}  // namespace widelimit::cli
