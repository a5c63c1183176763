#include "cli/propagation/propagation_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <tuple>

#include "cli/plots/gnuplot.hpp"

namespace widelimit::cli {

using namespace propagation;

namespace {

constexpr int field_points = 18;

std::string grid_block(const std::string& name, const PhaseDiagram& diagram, const Matrix<double>& values) {
  std::string block = "$" + name + " << EOD\n";
  for (Index row = 0; row < values.rows(); ++row) {
    for (Index column = 0; column < values.cols(); ++column)
      fmt::format_to(std::back_inserter(block), "{} {} {}\n",
                     diagram.x.values[static_cast<std::size_t>(column)],
                     diagram.y.values[static_cast<std::size_t>(row)], values(row, column));
    block += "\n";
  }
  return block + "EOD\n";
}

/// Curves apart by blank lines; one point far outside if there are none, because gnuplot refuses empty data.
std::string curve_block(const std::string& name, const std::vector<BoundaryCurve>& curves) {
  std::string block = "$" + name + " << EOD\n";
  if (curves.empty()) block += "1e30 1e30\n";
  for (const BoundaryCurve& curve : curves) {
    for (const BoundaryPoint& point : curve.points)
      fmt::format_to(std::back_inserter(block), "{} {}\n", point.x, point.y);
    block += "\n";
  }
  return block + "EOD\n";
}

double colour_range(const Matrix<double>& values) {
  double largest = 1e-9;
  for (Index k = 0; k < values.size(); ++k)
    if (std::isfinite(values.data()[k])) largest = std::max(largest, std::abs(values.data()[k]));
  return std::min(largest, 1.0);
}

std::string phase_panel(const char* title, const char* block, const PhaseDiagram& diagram,
                        const Matrix<double>& values) {
  const double range = colour_range(values);
  return fmt::format(
      "set title '{}'\nset cbrange [{}:{}]\nset xrange [{}:{}]\nset yrange [{}:{}]\n"
      "plot ${} with image notitle, $angle with lines lw 2.5 lc rgb 'black' title 'lambda_a = 0', "
      "$gradient with lines lw 2.5 dt 2 lc rgb '#007700' title 'lambda_g = 0'\n",
      title, -range, range, diagram.x.values.front(), diagram.x.values.back(), diagram.y.values.front(),
      diagram.y.values.back(), block);
}

/// Displacements of one block as arrows.
std::string field_block(const BlockMap& map, double highest_q) {
  std::string block = "$field << EOD\n";
  for (int i = 0; i <= field_points; ++i)
    for (int j = 1; j <= field_points; ++j) {
      const double cosine = static_cast<double>(i) / field_points, q = highest_q * j / field_points;
      const TokenState here = TokenState::from_cosine(q, cosine), next = map.block(here);
      double x = next.cosine() - cosine, y = (next.q - q) / highest_q;
      const double length = std::hypot(x, y);
      // Arrows grow with the root of the displacement, or slow regions would show none.
      const double scale = length > 0 ? std::min(std::sqrt(length), 1.0) * 0.1 / length : 0;
      fmt::format_to(std::back_inserter(block), "{} {} {} {}\n", cosine, q, x * scale, y * scale * highest_q);
    }
  return block + "EOD\n";
}

/// Those that are stable, or the others; a point far outside if there are none, because gnuplot refuses empty data.
std::string fixed_points_block(const char* name, const std::vector<FixedPoint>& points, bool stable) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const FixedPoint& point : points)
    if ((point.stability == Stability::stable) == stable)
      fmt::format_to(std::back_inserter(block), "{} {}\n", point.state.cosine(), point.state.q);
  if (block.ends_with("<< EOD\n")) block += "1e30 1e30\n";
  return block + "EOD\n";
}

struct Range {
  double from, to;
};

/// All but the outermost thousandths.
Range range_of(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  const double from = at(0.001), to = at(0.999);
  return {from, to > from ? to : from + 1e-6};
}

/// Two a cube root of the count, from 10 to 60 bins: finer ones would show noise.
std::string histogram_block(const std::string& name, const std::vector<double>& values, Range range) {
  const double bins = std::round(std::clamp(2 * std::cbrt(static_cast<double>(values.size())), 10.0, 60.0)),
               width = (range.to - range.from) / bins;
  std::vector<double> counts(static_cast<std::size_t>(bins), 0);
  for (const double value : values) {
    const double bin = std::floor((value - range.from) / width);
    if (bin >= 0 && bin < bins) counts[static_cast<std::size_t>(bin)] += 1;
  }
  std::string block = "$" + name + " << EOD\n";
  for (std::size_t i = 0; i < counts.size(); ++i)
    fmt::format_to(std::back_inserter(block), "{} {}\n", range.from + (static_cast<double>(i) + 0.5) * width,
                   counts[i] / (static_cast<double>(values.size()) * width));
  return block + "EOD\n";
}

}  // namespace

std::string phase_script(const PhaseDiagram& diagram, const std::vector<BoundaryCurve>& angle,
                         const std::vector<BoundaryCurve>& gradient) {
  std::string script = gnuplot_canvas(1200, 520);
  script += grid_block("a", diagram, diagram.lambda_a) + grid_block("g", diagram, diagram.lambda_g) +
            curve_block("angle", angle) + curve_block("gradient", gradient);
  script += fmt::format(
      "set multiplot layout 1,2\nset palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n"
      "set xlabel {}\nset ylabel {}\nset key top left opaque\n",
      gnuplot_quoted(coordinate_name(diagram.x.coordinate)),
      gnuplot_quoted(coordinate_name(diagram.y.coordinate)));
  script += phase_panel("angle exponent", "a", diagram, diagram.lambda_a) +
            phase_panel("gradient exponent", "g", diagram, diagram.lambda_g) + "unset multiplot\n";
  return script;
}

std::string simulated_phase_script(const SimulatedPhase& phase) {
  const PhaseDiagram axes{phase.x, phase.y, {}, {}};
  std::string script = gnuplot_canvas(1500, 860), panels;
  for (const auto& [name, compared] :
       {std::pair{"angle", &phase.angle}, std::pair{"gradient", &phase.gradient}}) {
    script += curve_block(fmt::format("{}_zero", name), compared->zeros);
    const double range = std::max(colour_range(compared->theory), colour_range(compared->networks));
    const double largest_z = 4;
    for (const auto& [kind, values, limit] :
         {std::tuple{"theory", &compared->theory, range}, std::tuple{"networks", &compared->networks, range},
          std::tuple{"z", &compared->z, largest_z}}) {
      script += grid_block(fmt::format("{}_{}", name, kind), axes, *values);
      panels += fmt::format(
          "set title '{} exponent, {}'\nset cbrange [{}:{}]\nset xrange [{}:{}]\nset yrange [{}:{}]\n"
          "plot ${}_{} with image notitle, ${}_zero with lines lw 2.5 lc rgb 'black' title 'theory: 0'\n",
          name, std::string_view(kind) == "z" ? "networks - theory in standard errors" : kind, -limit, limit,
          phase.x.values.front(), phase.x.values.back(), phase.y.values.front(), phase.y.values.back(), name,
          kind, name);
    }
  }
  script += fmt::format(
      "set multiplot layout 2,3\nset palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n"
      "set xlabel {}\nset ylabel {}\nset key top left opaque\n",
      gnuplot_quoted(coordinate_name(phase.x.coordinate)),
      gnuplot_quoted(coordinate_name(phase.y.coordinate)));
  return script + panels + "unset multiplot\n";
}

std::string trajectory_script(const BlockMap& map, const std::vector<TokenState>& states,
                              const std::vector<MeasuredState>& measured) {
  const std::vector<FixedPoint> fixed = fixed_points(map);
  double highest = 1;
  for (const TokenState& state : states) highest = std::max(highest, state.q);
  for (const FixedPoint& point : fixed) highest = std::max(highest, point.state.q);
  highest *= 1.1;
  std::string script = gnuplot_canvas(760, 620) + field_block(map, highest), plots;
  script += "$path << EOD\n";
  for (const TokenState& state : states)
    fmt::format_to(std::back_inserter(script), "{} {}\n", state.cosine(), state.q);
  script += "EOD\n" + fixed_points_block("stable", fixed, true) + fixed_points_block("others", fixed, false);
  if (!measured.empty()) {
    script += "$measured << EOD\n";
    for (const MeasuredState& state : measured)
      fmt::format_to(std::back_inserter(script), "{} {} {} {}\n", state.cosine.value, state.q.value,
                     state.cosine.standard_error, state.q.standard_error);
    script += "EOD\n";
    plots = ", $measured with xyerrorbars pt 6 lc rgb '#b2182b' title 'networks'";
  }
  script += fmt::format(
      "set xlabel 'cosine'\nset ylabel 'squared norm / d'\nset xrange [-0.02:1.05]\nset yrange [0:{}]\n"
      "set key bottom left opaque\nplot $field with vectors head size 0.008,25 lc rgb '#bbbbbb' notitle, "
      "$path with linespoints pt 7 ps 0.6 lw 2 lc rgb '#b2182b' title 'theory', "
      "$stable with points pt 7 ps 2 lc rgb 'black' title 'stable fixed point', "
      "$others with points pt 6 ps 2 lc rgb 'black' title 'unstable fixed point'{}\n",
      highest, plots);
  return script;
}

std::string histograms_script(const std::vector<TokenSamples>& samples,
                              const std::vector<TokenState>& theory) {
  std::string script = gnuplot_canvas(1200, 520), norms = "plot ", cosines = "plot ";
  for (std::size_t k = 0; k < samples.size(); ++k) {
    script +=
        histogram_block(fmt::format("q{}", k), samples[k].squared_norms, range_of(samples[k].squared_norms)) +
        histogram_block(fmt::format("c{}", k), samples[k].cosines, range_of(samples[k].cosines));
    for (auto* panel : {&norms, &cosines}) {
      const bool norm = panel == &norms;
      *panel += fmt::format("${}{} with histeps lw 1.5 lc {} title 'block {}', ", norm ? "q" : "c", k, k + 1,
                            samples[k].depth);
    }
  }
  std::string lines[2];
  for (std::size_t k = 0; k < theory.size(); ++k)
    for (int panel = 0; panel < 2; ++panel) {
      const double at = panel == 0 ? theory[k].q : theory[k].cosine();
      lines[panel] +=
          fmt::format("set arrow from {},graph 0 to {},graph 1 nohead dt 2 lw 1.5 lc {}\n", at, at, k + 1);
    }
  script +=
      "set multiplot layout 1,2 title 'histograms: networks, dashed: theory'\nset ylabel 'density'\n"
      "set xlabel 'squared norm / d'\n" +
      lines[0] + norms + "\nunset arrow\nset xlabel 'cosine'\n" + lines[1] + cosines + "\nunset multiplot\n";
  return script;
}

}  // namespace widelimit::cli
