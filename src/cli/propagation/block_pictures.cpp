#include "cli/propagation/block_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace widelimit::cli {

using results::Draw;
using results::Legend;
using results::Panel;
using results::Picture;
using results::Series;

namespace {

using propagation::BlockVariation;
using propagation::LayerGradients;
using propagation::PropagatedTokens;
using propagation::SampledBlock;
using propagation::VariedExponents;
using propagation::VariedNumber;
using propagation::ZeroLine;

/// columns(element) of every element as the columns of a series.
template <typename Element, typename ValuesOf>
std::vector<std::vector<double>> columns_of(const std::vector<Element>& elements, const ValuesOf& values_of) {
  std::vector<std::vector<double>> columns;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::vector<double> values = values_of(i, elements[i]);
    columns.resize(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) columns[k].push_back(values[k]);
  }
  return columns;
}

/// A mean against depth: a line of the theory, or points of networks with their errors.
template <typename Element, typename EstimateOf>
Series against_depth(const std::vector<Element>& elements, double first, bool networks,
                     const EstimateOf& estimate_of, Series style) {
  style.columns = columns_of(elements, [&](std::size_t i, const Element& element) {
    const numerics::Estimate one = estimate_of(element);
    std::vector<double> row{first + static_cast<double>(i), one.value};
    if (networks) row.push_back(one.standard_error);
    return row;
  });
  style.draw = networks ? Draw::bars : Draw::lines;
  return style;
}

/// Whether a layer's matrices stand after it, which are drawn in its place.
bool has_matrices(const std::vector<LayerGradients>& gradients, std::size_t k) {
  return gradients[k].parameter.empty() && k + 1 < gradients.size() && !gradients[k + 1].parameter.empty() &&
         gradients[k + 1].path == gradients[k].path;
}

/// Norms on the left axis, cosines on the right one.
Panel tokens_panel(const SampledBlock& theory, const SampledBlock& networks, double width) {
  const auto norm = [](const PropagatedTokens& tokens) { return tokens.squared_norm; };
  const auto cosine = [](const PropagatedTokens& tokens) { return tokens.cosine; };
  Panel panel{.x = {.label = "block"},
              .y = {.label = "squared norm / width"},
              .second_y = {.label = "cosine", .from = -0.05, .to = 1.05},
              .legend = Legend::bottom_right,
              .margin = 0.03,
              .series = {against_depth(theory.tokens, 0, false, norm,
                                       {.name = "squared norm", .colour = 1, .width = 2}),
                         against_depth(theory.tokens, 0, false, cosine,
                                       {.name = "cosine", .colour = 2, .width = 2, .on_second_axis = true})},
              .place = {{0, 0, width, 0.95}}};
  if (theory.tokens.size() <= 13) panel.x.tic_step = 1;
  if (networks.tokens.empty()) return panel;
  panel.series.push_back(against_depth(networks.tokens, 0, true, norm, {.colour = 1}));
  panel.series.push_back(
      against_depth(networks.tokens, 0, true, cosine, {.colour = 2, .on_second_axis = true}));
  return panel;
}

/// The gradients of every layer, or of the tokens where there are none.
Panel gradients_panel(const SampledBlock& theory, const SampledBlock& networks, const Panel& beside) {
  const double left = (*beside.place)[2];
  Panel panel{.x = beside.x,
              .legend = Legend::right_column,
              .margin = beside.margin,
              .place = {{left, 0, 1 - left, 0.95}}};
  if (theory.gradients.empty()) {
    panel.y.label = "log10 squared Jacobian norm";
    panel.series = {
        {.draw = Draw::line_points,
         .columns = columns_of(theory.tokens,
                               [](std::size_t l, const PropagatedTokens& tokens) -> std::vector<double> {
                                 return {static_cast<double>(l), tokens.log_gradient.value / std::log(10.0)};
                               }),
         .width = 2,
         .size = 0.6}};
    return panel;
  }
  panel.y = {.label = "squared gradient of the parameters", .logarithmic = true, .number_format = "%g"};
  const bool sampled = !networks.tokens.empty();
  panel.series.push_back({.draw = Draw::none, .name = "theory", .colour = 0, .rgb = "black", .width = 2});
  if (sampled)
    panel.series.push_back({.draw = Draw::none,
                            .name = "networks",
                            .colour = 0,
                            .rgb = "black",
                            .size = 0.7,
                            .draw_as = Draw::points});
  const auto same = [](const numerics::Estimate& estimate) { return estimate; };
  for (std::size_t k = 0; k < theory.gradients.size(); ++k) {
    const LayerGradients& layer = theory.gradients[k];
    if (has_matrices(theory.gradients, k)) continue;
    const int colour = static_cast<int>(k) + 1;
    // Query and key have the same gradients: dashes show both.
    panel.series.push_back(
        against_depth(layer.blocks, 1, false, same,
                      {.name = fmt::format("{}{} {}", layer.kind,
                                           layer.parameter.empty() ? "" : " " + layer.parameter, layer.path),
                       .colour = colour,
                       .width = 2,
                       .dash = static_cast<int>(k % 3) + 1}));
    if (sampled)
      panel.series.push_back(
          against_depth(networks.gradients[k].blocks, 1, true, same, {.colour = colour, .size = 0.7}));
  }
  return panel;
}

/// Bounds of the cell around the k-th value: half way to its neighbours, as far again at the ends.
std::pair<double, double> cell_of(const VariedNumber& number, std::size_t k) {
  const auto& values = number.values;
  const auto scaled = [&](std::size_t i) { return number.logarithmic ? std::log(values[i]) : values[i]; };
  const double here = scaled(k),
               step = (scaled(values.size() - 1) - scaled(0)) / static_cast<double>(values.size() - 1);
  const auto unscaled = [&](double value) { return number.logarithmic ? std::exp(value) : value; };
  return {unscaled(here - step / 2), unscaled(here + step / 2)};
}

/// Label, scale and range of an axis, out to the ends of the cells. A logarithmic one has numbers at 1, 2 and 5 of each
/// decade where there are few decades; ranges without such a place keep gnuplot's own.
results::Axis varied_axis(const VariedNumber& number) {
  results::Axis axis{.label = number.path,
                     .from = cell_of(number, 0).first,
                     .to = cell_of(number, number.values.size() - 1).second,
                     .logarithmic = number.logarithmic};
  if (!number.logarithmic || *axis.to / *axis.from > 1e3) return axis;
  for (double decade = std::pow(10.0, std::floor(std::log10(*axis.from))); decade <= *axis.to; decade *= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if (digit * decade >= *axis.from && digit * decade <= *axis.to)
        axis.named_tics.emplace_back(digit * decade, "");
  return axis;
}

bool some_lack_angles(const std::vector<VariedExponents>& grid) {
  return std::ranges::any_of(grid,
                             [](const VariedExponents& point) { return !point.exponents.no_angles.empty(); });
}

/// Zeros over one number, as points.
Series zero_points(const std::string& name, int colour, const ZeroLine& zeros) {
  Series series{.draw = Draw::points, .columns = {{}, {}}, .name = name, .colour = colour, .size = 1.4};
  for (const auto& point : zeros.points) {
    series.columns[0].push_back(point.front());
    series.columns[1].push_back(0);
  }
  return series;
}

/// Zeros over two numbers, as segments.
Series zero_segments(const std::string& name, const char* rgb, int dash, const ZeroLine& zeros) {
  Series series{.columns = {{}, {}}, .name = name, .colour = 0, .rgb = rgb, .width = 3, .dash = dash};
  for (const auto& [from, to] : zeros.segments)
    for (std::size_t k = 0; k < 2; ++k)
      series.columns[k].insert(series.columns[k].end(),
                               {zeros.points[from][k], zeros.points[to][k], std::nan("")});
  return series;
}

/// An exponent of every point of the grid.
using ExponentOf = double (*)(const VariedExponents& point);
double angle_of(const VariedExponents& point) { return point.exponents.angle.value; }
double gradient_of(const VariedExponents& point) { return point.exponents.gradient.value; }

/// In colour over two numbers; grey where there is none.
Panel exponent_panel(const std::string& title, const BlockVariation& variation,
                     const std::vector<VariedExponents>& grid, ExponentOf exponent_of,
                     const ZeroLine& angle_zeros, const ZeroLine& gradient_zeros) {
  const VariedNumber &x = variation.numbers().front(), &y = variation.numbers().back();
  Series boxes{.draw = Draw::boxes, .columns = std::vector<std::vector<double>>(7)};
  double largest = 1e-9;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const double value = exponent_of(grid[i]);
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    if (std::isnan(value)) continue;
    auto [left, right] = cell_of(x, i / y.values.size());
    auto [bottom, top] = cell_of(y, i % y.values.size());
    // Under the next cells, or seams would show.
    right += 0.02 * (right - left);
    top += 0.02 * (top - bottom);
    const double row[] = {grid[i].values.front(), grid[i].values.back(), left, right, bottom, top, value};
    for (std::size_t k = 0; k < 7; ++k) boxes.columns[k].push_back(row[k]);
  }
  const double shown = std::min(largest, 1.0);
  return {.title = title,
          .x = varied_axis(x),
          .y = varied_axis(y),
          .colours = {.label = std::string("growth a block") + (largest > shown ? " (cut at 1)" : ""),
                      .from = -shown,
                      .to = shown},
          .legend = Legend::outside_below,
          .grey_ground = true,
          .series = {std::move(boxes), zero_segments("lambda_a = 0", "black", 1, angle_zeros),
                     zero_segments("lambda_g = 0", "#007700", 2, gradient_zeros)}};
}

}  // namespace

Picture block_picture(const SampledBlock& theory, const SampledBlock& networks) {
  // The key of all parameters takes the place of a panel.
  Panel tokens = tokens_panel(theory, networks, theory.gradients.empty() ? 0.5 : 0.35);
  Panel gradients = gradients_panel(theory, networks, tokens);
  return {.panels = {std::move(tokens), std::move(gradients)},
          .width = theory.gradients.empty() ? 1200 : 1500,
          .title = networks.tokens.empty() ? "" : "lines: theory, points: networks with one standard error"};
}

Picture variation_picture(const BlockVariation& variation, const std::vector<VariedExponents>& grid,
                          const ZeroLine& angle_zeros, const ZeroLine& gradient_zeros) {
  const bool lack_angles = some_lack_angles(grid);
  if (variation.numbers().size() == 2)
    return {.panels = {exponent_panel(std::string("angle exponent ln(1 + lambda_a)") +
                                          (lack_angles ? "; grey: equal tokens do not stay equal" : ""),
                                      variation, grid, angle_of, angle_zeros, gradient_zeros),
                       exponent_panel("gradient exponent lambda_g", variation, grid, gradient_of, angle_zeros,
                                      gradient_zeros)},
            .width = 1300,
            .height = 560};
  const auto line = [&](const std::string& name, int colour, ExponentOf exponent_of) {
    return Series{
        .columns = columns_of(grid,
                              [&](std::size_t, const VariedExponents& point) -> std::vector<double> {
                                return {point.values.front(), exponent_of(point)};
                              }),
        .name = name,
        .colour = colour,
        .width = 2};
  };
  return {.panels = {{.x = varied_axis(variation.numbers().front()),
                      .y = {.label = "growth a block"},
                      .legend = Legend::outside_below,
                      .zero_line = true,
                      .series = {line(std::string("angles, ln(1 + lambda_a)") +
                                          (lack_angles ? ", where equal tokens stay equal" : ""),
                                      1, angle_of),
                                 line("gradients, lambda_g", 2, gradient_of),
                                 zero_points("lambda_a = 0", 1, angle_zeros),
                                 zero_points("lambda_g = 0", 2, gradient_zeros)}}},
          .height = 520};
}

}  // namespace widelimit::cli
