#include "cli/report/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/options/inference_options.hpp"
#include "cli/report/html.hpp"
#include "cli/report/svg_plot.hpp"

namespace widelimit::cli {
namespace {

constexpr std::string_view grey = "#777777";

PlotAxis unit_axis(std::string label) { return {std::move(label), 0, 1}; }

/// White to blue.
std::string cell_colour(double share) {
  const auto mix = [&](double from, double to) {
    return static_cast<int>(std::lround(from + share * (to - from)));
  };
  return fmt::format("rgb({},{},{})", mix(255, 20), mix(255, 80), mix(255, 155));
}

/// Where the cells of a confusion matrix lie.
struct CellGrid {
  double cell, left, top;
  Index classes;
  bool numbers, names;
};

CellGrid grid_of(const std::vector<std::string>& class_names) {
  constexpr double side = 400, widest_name = 130;
  constexpr std::size_t most_numbers = 25, most_names = 60;
  std::size_t longest = 0;
  for (const std::string& name : class_names) longest = std::max(longest, name.size());
  const double count = static_cast<double>(class_names.size());
  const bool names = class_names.size() <= most_names;
  return {.cell = std::clamp(side / count, 3.0, 54.0),
          .left = names ? std::min(widest_name, 22 + 6.6 * static_cast<double>(longest)) + 18 : 30,
          .top = 4,
          .classes = static_cast<Index>(class_names.size()),
          .numbers = class_names.size() <= most_numbers,
          .names = names};
}

std::string confusion_cells(const gp::ConfusionMatrix& matrix, const CellGrid& grid,
                            const std::vector<std::string>& class_names) {
  std::string text;
  const double largest = std::max<double>(1, static_cast<double>(matrix.maxCoeff()));
  for (Index row = 0; row < grid.classes; ++row)
    for (Index column = 0; column < grid.classes; ++column) {
      const double x = grid.left + static_cast<double>(column) * grid.cell,
                   y = grid.top + static_cast<double>(row) * grid.cell;
      const double share = static_cast<double>(matrix(row, column)) / largest;
      fmt::format_to(std::back_inserter(text),
                     "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}' "
                     "class='cell{}'><title>{} taken for {}: {}</title></rect>",
                     x, y, grid.cell, grid.cell, cell_colour(share), row == column ? " right" : "",
                     html_escaped(class_names[static_cast<std::size_t>(row)]),
                     html_escaped(class_names[static_cast<std::size_t>(column)]), matrix(row, column));
      if (grid.numbers && matrix(row, column) != 0)
        fmt::format_to(
            std::back_inserter(text), "<text x='{:.1f}' y='{:.1f}' text-anchor='middle' fill='{}'>{}</text>",
            x + grid.cell / 2, y + grid.cell / 2 + 4, share > 0.55 ? "#fff" : "#222", matrix(row, column));
    }
  return text;
}

std::string confusion_names(const CellGrid& grid, const std::vector<std::string>& class_names) {
  std::string text;
  if (!grid.names) return text;
  constexpr std::size_t longest = 18;
  const double below = grid.top + static_cast<double>(grid.classes) * grid.cell + 8;
  for (std::size_t c = 0; c < class_names.size(); ++c) {
    const double middle = (static_cast<double>(c) + 0.5) * grid.cell;
    const std::string name = html_escaped(cut_utf8(class_names[c], longest));
    fmt::format_to(std::back_inserter(text),
                   "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text><text "
                   "transform='translate({:.1f},{:.1f}) rotate(-40)' text-anchor='end'>{}</text>",
                   grid.left - 6, grid.top + middle + 4, name, grid.left + middle + 5, below + 4, name);
  }
  return text;
}

}  // namespace

std::string accuracy_picture(const std::vector<AccuracyBar>& bars) {
  constexpr double left = 300, right = 150, row = 26, width = 800;
  constexpr std::size_t most_letters = 32;  // As many as fit, whatever the letters.
  const double height = row * static_cast<double>(bars.size()) + 8;
  double longest = 0.01;
  for (const AccuracyBar& bar : bars) longest = std::max(longest, bar.interval.high);
  const auto x_of = [&](double accuracy) { return left + accuracy / longest * (width - left - right); };
  std::string text;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const AccuracyBar& bar = bars[i];
    const double y = 4 + row * static_cast<double>(i), middle = y + row / 2;
    text += fmt::format(
        "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text><rect x='{}' y='{:.1f}' width='{:.1f}' "
        "height='16' fill='{}' opacity='0.75'/>",
        left - 8, middle + 4, html_escaped(tail_utf8(bar.label, most_letters)), left, y + 5,
        x_of(bar.accuracy) - left, bar.colour);
    text += fmt::format(
        "<path d='M{0:.1f},{1:.1f} H{2:.1f} M{0:.1f},{3:.1f} V{4:.1f} M{2:.1f},{3:.1f} V{4:.1f}' "
        "stroke='#222' fill='none'/><text x='{5:.1f}' y='{6:.1f}'>{7:.1f} ({8:.1f} – {9:.1f}) %</text>",
        x_of(bar.interval.low), middle, x_of(bar.interval.high), middle - 4, middle + 4,
        x_of(bar.interval.high) + 8, middle + 4, 100 * bar.accuracy, 100 * bar.interval.low,
        100 * bar.interval.high);
  }
  return fmt::format(
      "<svg viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img' class='plot'><title>Accuracies with "
      "95 % intervals</title>{2}</svg>",
      width, height, text);
}

std::string relevance_picture(const std::vector<ChannelScale>& scales) {
  constexpr double left = 300, right = 90, row = 22, width = 800;
  constexpr std::size_t most_letters = 32, most = 40;
  const std::size_t shown = std::min(scales.size(), most);
  const double height = row * static_cast<double>(shown) + 8,
               largest = scales.empty() || !(scales.front().scale > 0) ? 1 : scales.front().scale;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const double y = 4 + row * static_cast<double>(i),
                 length = scales[i].scale / largest * (width - left - right);
    text += fmt::format(
        "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text><rect x='{}' y='{:.1f}' width='{:.1f}' "
        "height='14' "
        "fill='{}' opacity='0.75'/><text x='{:.1f}' y='{:.1f}'>{:.3g}</text>",
        left - 8, y + 15, html_escaped(tail_utf8(scales[i].name, most_letters)), left, y + 4, length,
        plot_colour(0), left + length + 8, y + 15, scales[i].scale);
  }
  return fmt::format(
      "<svg viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img' class='plot'><title>Scales of the "
      "channels</title>{2}</svg>",
      width, height, text);
}

std::string confusion_picture(const gp::ConfusionMatrix& matrix,
                              const std::vector<std::string>& class_names) {
  const CellGrid grid = grid_of(class_names);
  const double side = grid.cell * static_cast<double>(grid.classes), below = grid.names ? 86 : 30;
  const double width = grid.left + side + 8, height = grid.top + side + below;
  return fmt::format(
      "<svg viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' height='{1:.0f}' role='img' "
      "class='plot'><title>Confusion matrix</title>{2}{3}<text x='{4:.0f}' y='{5:.0f}' text-anchor='middle' "
      "class='axis'>predicted</text><text transform='translate(12,{6:.0f}) rotate(-90)' text-anchor='middle' "
      "class='axis'>true</text></svg>",
      width, height, confusion_cells(matrix, grid, class_names), confusion_names(grid, class_names),
      grid.left + side / 2, height - 4, grid.top + side / 2);
}

std::string reliability_picture(const gp::Calibration& calibration, std::string_view colour) {
  SvgPlot plot("Reliability diagram", unit_axis("confidence"), unit_axis("share that is right"), 440, 360);
  plot.line({{0, 0}, {1, 1}}, grey, "stroke-dasharray='4 4'");
  double total = 0;
  for (const auto& bin : calibration.bins) total += static_cast<double>(bin.count);
  for (const auto& bin : calibration.bins) {
    if (bin.count == 0) continue;
    plot.box({bin.lower, 0}, {bin.upper, bin.accuracy}, colour, 0.22,
             fmt::format("{} predictions, mean confidence {:.3f}, {:.3f} right", bin.count,
                         bin.mean_confidence, bin.accuracy));
    plot.line({{bin.mean_confidence, bin.mean_confidence}, {bin.mean_confidence, bin.accuracy}}, colour,
              "opacity='0.6'");
    const double share = static_cast<double>(bin.count) / total;
    plot.dots({{bin.mean_confidence, bin.accuracy}}, colour,
              std::round(10 * (2 + 10 * std::sqrt(share))) / 10);
  }
  return plot.svg();
}

namespace {

/// The choice for all outputs of a prediction, or for one of a few.
struct ChoiceCurve {
  std::string name;
  const gp::Selection* selection;
};

std::vector<ChoiceCurve> choice_curves(const GpResult& result) {
  constexpr std::size_t most_outputs = 4;  // More curves cannot be told apart.
  std::vector<ChoiceCurve> curves;
  for (const GpPrediction& prediction : result.predictions)
    for (std::size_t c = 0; c < std::min(most_outputs, prediction.selections.size()); ++c)
      curves.push_back({prediction.selections.size() == 1 ? prediction.name
                                                          : fmt::format("{}, output {}", prediction.name, c),
                        &prediction.selections[c]});
  return curves;
}

}  // namespace

std::string choice_picture(const GpResult& result) {
  const gp::Criterion criterion = result.predictions.front().criterion;
  const bool percent = criterion == gp::Criterion::accuracy;
  const auto value_of = [&](const gp::RegulariserScore& score) {
    return (percent ? 100 : 1) * score_by(score, criterion);
  };
  std::vector<double> values, regularisers;
  const std::vector<ChoiceCurve> curves = choice_curves(result);
  for (const ChoiceCurve& curve : curves)
    for (const gp::RegulariserScore& score : curve.selection->scores) {
      regularisers.push_back(score.relative_regulariser);
      if (std::isfinite(value_of(score))) values.push_back(value_of(score));
    }
  if (values.empty()) return "";
  const auto [low, high] = std::minmax_element(regularisers.begin(), regularisers.end());
  SvgPlot plot("Criterion against regulariser",
               {"regulariser", *low / 1.5, *high * 1.5, PlotAxis::Scale::logarithmic},
               axis_over(criterion_title(criterion) + std::string(percent ? ", %" : ""), values));
  std::size_t series = 0;
  for (const ChoiceCurve& curve : curves) {
    const std::string_view colour = plot_colour(series++);
    std::vector<PlotPoint> points;
    for (const gp::RegulariserScore& score : curve.selection->scores) {
      if (!std::isfinite(value_of(score))) continue;
      points.push_back({score.relative_regulariser, value_of(score)});
      if (score.relative_regulariser == curve.selection->best.value()) plot.dots({points.back()}, colour, 6);
    }
    // Curves often coincide: dashes let those below show.
    plot.line(points, colour, series == 1 ? "" : "stroke-dasharray='7 5'");
    plot.dots(points, colour, 2.2);
    plot.legend(curve.name, colour);
  }
  return plot.svg();
}

std::string prior_picture(const GpPrior& prior) {
  std::vector<double> values{2 * prior.deviation.maxCoeff(), -2 * prior.deviation.maxCoeff()};
  values.insert(values.end(), prior.functions.data(), prior.functions.data() + prior.functions.size());
  const bool is_line = prior.second.has_value();
  PlotAxis x = is_line ? unit_axis("place on the line") : axis_over("test input", prior.places);
  SvgPlot plot("Samples of the prior", std::move(x), axis_over("output", values));
  std::vector<PlotPoint> lower, upper;
  for (std::size_t i = 0; i < prior.places.size(); ++i) {
    const double deviation = prior.deviation(static_cast<Index>(i));
    lower.push_back({prior.places[i], -2 * deviation});
    upper.push_back({prior.places[i], 2 * deviation});
  }
  plot.band(lower, upper, grey);
  for (Index k = 0; k < prior.functions.cols(); ++k) {
    const std::string_view colour = plot_colour(static_cast<std::size_t>(k));
    std::vector<PlotPoint> points;
    for (std::size_t i = 0; i < prior.places.size(); ++i)
      points.push_back({prior.places[i], prior.functions(static_cast<Index>(i), k)});
    if (is_line)
      plot.line(points, colour);
    else
      plot.dots(points, colour, 3);
  }
  return plot.svg();
}

std::string coverage_picture(const GpPrediction& prediction, const Matrix<double>& targets,
                             std::string_view colour) {
  // The smallest central interval that holds a number has this probability.
  std::vector<double> probabilities;
  const Matrix<double> observed = prediction.observation_variance();
  for (Index i = 0; i < targets.rows(); ++i)
    for (Index k = 0; k < targets.cols(); ++k)
      probabilities.push_back(prediction.law.probability_within(
          prediction.law.distance(targets(i, k), prediction.mean(i, k), observed(i, k))));
  std::sort(probabilities.begin(), probabilities.end());
  SvgPlot plot("Coverage of intervals", unit_axis("probability of the interval"),
               unit_axis("share of numbers in it"), 440, 360);
  plot.line({{0, 0}, {1, 1}}, grey, "stroke-dasharray='4 4'");
  // More steps than this cannot be seen.
  constexpr std::size_t most_steps = 1000;
  const std::size_t count = probabilities.size(), stride = count / most_steps + 1;
  std::vector<PlotPoint> steps{{0, 0}};
  for (std::size_t i = stride - 1; i < count; i += stride) {
    steps.push_back({probabilities[i], steps.back().y});
    steps.push_back({probabilities[i], static_cast<double>(i + 1) / static_cast<double>(count)});
  }
  steps.push_back({1, 1});
  plot.line(steps, colour);
  return plot.svg();
}

std::string scatter_picture(const Matrix<double>& mean, const Matrix<double>& targets,
                            std::string_view colour) {
  std::vector<double> values(mean.data(), mean.data() + mean.size());
  values.insert(values.end(), targets.data(), targets.data() + targets.size());
  const PlotAxis axis = axis_over("target", values);
  SvgPlot plot("Predicted against true numbers", axis, {"predicted mean", axis.low, axis.high}, 440, 360);
  plot.line({{axis.low, axis.low}, {axis.high, axis.high}}, grey, "stroke-dasharray='4 4'");
  constexpr Index most = 4000;
  std::vector<PlotPoint> points;
  for (Index i = 0; i < std::min(most, mean.size()); ++i)
    points.push_back({targets.data()[i], mean.data()[i]});
  plot.dots(points, colour, 2.2);
  return plot.svg();
}

}  // namespace widelimit::cli
