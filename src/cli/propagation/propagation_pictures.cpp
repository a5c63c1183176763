#include "cli/propagation/propagation_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace widelimit::cli {

using namespace propagation;
using results::Draw;
using results::Panel;
using results::Picture;
using results::Series;

namespace {

constexpr double outside = 1e30, nothing = std::numeric_limits<double>::quiet_NaN();

/// Curves apart by gaps; one point far outside if there are none, so that the legend has them.
Series curves_series(const std::vector<BoundaryCurve>& curves, const std::string& name, const char* rgb,
                     int dash) {
  Series series{.columns = {{}, {}}, .name = name, .colour = 0, .rgb = rgb, .width = 2.5, .dash = dash};
  const auto add = [&](double x, double y) {
    series.columns[0].push_back(x);
    series.columns[1].push_back(y);
  };
  if (curves.empty()) add(outside, outside);
  for (const BoundaryCurve& curve : curves) {
    for (const BoundaryPoint& point : curve.points) add(point.x, point.y);
    add(nothing, nothing);
  }
  return series;
}

/// Values over two parameters in colour.
Panel grid_panel(const std::string& title, const Axis& x, const Axis& y, const Matrix<double>& values,
                 double range) {
  Series cells{.draw = Draw::cells, .columns = {{}, {}, {}}};
  for (Index row = 0; row < values.rows(); ++row)
    for (Index column = 0; column < values.cols(); ++column) {
      cells.columns[0].push_back(x.values[static_cast<std::size_t>(column)]);
      cells.columns[1].push_back(y.values[static_cast<std::size_t>(row)]);
      cells.columns[2].push_back(values(row, column));
    }
  return {.title = title,
          .x = {.label = std::string(coordinate_name(x.coordinate)),
                .from = x.values.front(),
                .to = x.values.back()},
          .y = {.label = std::string(coordinate_name(y.coordinate)),
                .from = y.values.front(),
                .to = y.values.back()},
          .colours = {.from = -range, .to = range},
          .legend = results::Legend::top_left,
          .series = {std::move(cells)}};
}

/// Displacements of one block as arrows.
Series field_series(const BlockMap& map, double highest_q) {
  constexpr int field_points = 18;
  Series field{.draw = Draw::arrows, .columns = {{}, {}, {}, {}}, .colour = 0, .rgb = "#bbbbbb"};
  for (int i = 0; i <= field_points; ++i)
    for (int j = 1; j <= field_points; ++j) {
      const double cosine = static_cast<double>(i) / field_points, q = highest_q * j / field_points;
      const TokenState here = TokenState::from_cosine(q, cosine), next = map.block(here);
      const double x = next.cosine() - cosine, y = (next.q - q) / highest_q, length = std::hypot(x, y);
      // Arrows grow with the root of the displacement, or slow regions would show none.
      const double scale = length > 0 ? std::min(std::sqrt(length), 1.0) * 0.1 / length : 0;
      const double arrow[] = {cosine, q, x * scale, y * scale * highest_q};
      for (std::size_t k = 0; k < 4; ++k) field.columns[k].push_back(arrow[k]);
    }
  return field;
}

/// Those that are stable, or the others; a point far outside if there are none, so that the legend has them.
Series fixed_points_series(const std::vector<FixedPoint>& points, bool stable) {
  Series series{.draw = Draw::points,
                .columns = {{}, {}},
                .name = stable ? "stable fixed point" : "unstable fixed point",
                .colour = 0,
                .rgb = "black",
                .size = 2,
                .mark = stable ? 7 : 6};
  for (const FixedPoint& point : points)
    if ((point.stability == Stability::stable) == stable) {
      series.columns[0].push_back(point.state.cosine());
      series.columns[1].push_back(point.state.q);
    }
  if (series.columns[0].empty()) series.columns = {{outside}, {outside}};
  return series;
}

/// All but the outermost thousandths; two bins a cube root of the count, from 10 to 60: finer ones would show noise.
Series histogram_series(const std::vector<double>& values, const std::string& name, int colour) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  const double from = at(0.001), to = at(0.999) > from ? at(0.999) : from + 1e-6;
  const double bins = std::round(std::clamp(2 * std::cbrt(static_cast<double>(values.size())), 10.0, 60.0)),
               width = (to - from) / bins;
  std::vector<double> counts(static_cast<std::size_t>(bins), 0);
  for (const double value : values) {
    const double bin = std::floor((value - from) / width);
    if (bin >= 0 && bin < bins) counts[static_cast<std::size_t>(bin)] += 1;
  }
  Series series{.draw = Draw::steps, .columns = {{}, {}}, .name = name, .colour = colour, .width = 1.5};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    series.columns[0].push_back(from + (static_cast<double>(i) + 0.5) * width);
    series.columns[1].push_back(counts[i] / (static_cast<double>(values.size()) * width));
  }
  return series;
}

}  // namespace

double colour_range(const Matrix<double>& values) {
  double largest = 1e-9;
  for (Index k = 0; k < values.size(); ++k)
    if (std::isfinite(values.data()[k])) largest = std::max(largest, std::abs(values.data()[k]));
  return std::min(largest, 1.0);
}

Picture phase_picture(const PhaseDiagram& diagram, const std::vector<BoundaryCurve>& angle,
                      const std::vector<BoundaryCurve>& gradient) {
  Picture picture{.panels = {}, .width = 1200, .height = 520};
  for (const auto& [title, values] :
       {std::pair("angle exponent", &diagram.lambda_a), std::pair("gradient exponent", &diagram.lambda_g)}) {
    Panel panel = grid_panel(title, diagram.x, diagram.y, *values, colour_range(*values));
    panel.series.push_back(curves_series(angle, "lambda_a = 0", "black", 1));
    panel.series.push_back(curves_series(gradient, "lambda_g = 0", "#007700", 2));
    picture.panels.push_back(std::move(panel));
  }
  return picture;
}

Picture simulated_phase_picture(const SimulatedPhase& phase) {
  Picture picture{.panels = {}, .width = 1500, .height = 860, .columns = 3};
  for (const auto& [name, compared] :
       {std::pair{"angle", &phase.angle}, std::pair{"gradient", &phase.gradient}}) {
    const double range = std::max(colour_range(compared->theory), colour_range(compared->networks));
    const auto add = [&, exponent = name, zeros = &compared->zeros](
                         const char* kind, const Matrix<double>& values, double limit) {
      picture.panels.push_back(
          grid_panel(fmt::format("{} exponent, {}", exponent, kind), phase.x, phase.y, values, limit));
      picture.panels.back().series.push_back(curves_series(*zeros, "theory: 0", "black", 1));
    };
    constexpr double largest_z = 4;
    add("theory", compared->theory, range);
    add("networks", compared->networks, range);
    add("networks - theory in standard errors", compared->z, largest_z);
  }
  return picture;
}

Picture trajectory_picture(const BlockMap& map, const std::vector<TokenState>& states,
                           const std::vector<MeasuredState>& measured) {
  const std::vector<FixedPoint> fixed = fixed_points(map);
  double highest = 1;
  for (const TokenState& state : states) highest = std::max(highest, state.q);
  for (const FixedPoint& point : fixed) highest = std::max(highest, point.state.q);
  highest *= 1.1;
  Series path{.draw = Draw::line_points,
              .columns = {{}, {}},
              .name = "theory",
              .colour = 0,
              .rgb = "#b2182b",
              .width = 2,
              .size = 0.6};
  for (const TokenState& state : states) {
    path.columns[0].push_back(state.cosine());
    path.columns[1].push_back(state.q);
  }
  Panel panel{.x = {.label = "cosine", .from = -0.02, .to = 1.05},
              .y = {.label = "squared norm / d", .from = 0, .to = highest},
              .legend = results::Legend::bottom_left,
              .series = {field_series(map, highest), std::move(path), fixed_points_series(fixed, true),
                         fixed_points_series(fixed, false)}};
  if (!measured.empty()) {
    Series networks{.draw = Draw::cross_bars,
                    .columns = {{}, {}, {}, {}},
                    .name = "networks",
                    .colour = 0,
                    .rgb = "#b2182b",
                    .mark = 6};
    for (const MeasuredState& state : measured) {
      networks.columns[0].push_back(state.cosine.value);
      networks.columns[1].push_back(state.q.value);
      networks.columns[2].push_back(state.cosine.standard_error);
      networks.columns[3].push_back(state.q.standard_error);
    }
    panel.series.push_back(std::move(networks));
  }
  return {.panels = {std::move(panel)}, .height = 620};
}

Picture histograms_picture(const std::vector<TokenSamples>& samples, const std::vector<TokenState>& theory) {
  Panel norms{.x = {.label = "squared norm / d"}, .y = {.label = "density"}},
      cosines{.x = {.label = "cosine"}, .y = {.label = "density"}};
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const std::string name = fmt::format("block {}", samples[k].depth);
    const int colour = static_cast<int>(k) + 1;
    norms.series.push_back(histogram_series(samples[k].squared_norms, name, colour));
    cosines.series.push_back(histogram_series(samples[k].cosines, name, colour));
  }
  for (std::size_t k = 0; k < theory.size(); ++k)
    for (const auto& [panel, at] : {std::pair(&norms, theory[k].q), std::pair(&cosines, theory[k].cosine())})
      panel->rules.push_back(
          {.x = at, .in_front = false, .colour = static_cast<int>(k) + 1, .dash = 2, .width = 1.5});
  return {.panels = {std::move(norms), std::move(cosines)},
          .width = 1200,
          .height = 520,
          .title = "histograms: networks, dashed: theory"};
}

}  // namespace widelimit::cli
