#include "cli/propagation/block_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/plots/gnuplot.hpp"

namespace widelimit::cli {
namespace {

using propagation::BlockVariation;
using propagation::LayerGradients;
using propagation::PropagatedTokens;
using propagation::SampledBlock;
using propagation::VariedExponents;
using propagation::VariedNumber;
using propagation::ZeroLine;

std::string tokens_block(const char* name, const std::vector<PropagatedTokens>& tokens) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (std::size_t l = 0; l < tokens.size(); ++l)
    fmt::format_to(std::back_inserter(block), "{} {} {} {} {} {}\n", l, tokens[l].squared_norm.value,
                   tokens[l].squared_norm.standard_error, tokens[l].cosine.value,
                   tokens[l].cosine.standard_error, tokens[l].log_gradient.value / std::log(10.0));
  return block + "EOD\n";
}

std::string layer_block(const char* name, std::size_t k, const LayerGradients& layer) {
  std::string block = fmt::format("${}{} << EOD\n", name, k);
  for (std::size_t l = 0; l < layer.blocks.size(); ++l)
    fmt::format_to(std::back_inserter(block), "{} {} {}\n", l + 1, layer.blocks[l].value,
                   layer.blocks[l].standard_error);
  return block + "EOD\n";
}

/// Whether a layer's matrices stand after it, which are drawn in its place.
bool has_matrices(const std::vector<LayerGradients>& gradients, std::size_t k) {
  return gradients[k].parameter.empty() && k + 1 < gradients.size() && !gradients[k + 1].parameter.empty() &&
         gradients[k + 1].path == gradients[k].path;
}

std::string point_block(const char* name, const ZeroLine& zeros) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const auto& point : zeros.points) fmt::format_to(std::back_inserter(block), "{} 0\n", point.front());
  // gnuplot refuses empty data.
  return block + "nan nan\nEOD\n";
}

std::string segment_block(const char* name, const ZeroLine& zeros) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const auto& [from, to] : zeros.segments)
    fmt::format_to(std::back_inserter(block), "{}\n{}\n\n", fmt::join(zeros.points[from], " "),
                   fmt::join(zeros.points[to], " "));
  return block + "nan nan\nEOD\n";
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

/// x, its cell, y, its cell, and the exponents; one number has no y.
std::string grid_block_of(const std::vector<VariedExponents>& grid, const BlockVariation& variation) {
  const auto& x = variation.numbers().front();
  const auto& y = variation.numbers().back();
  std::string block = "$grid << EOD\n";
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const std::size_t along = variation.numbers().size() == 1 ? 1 : y.values.size();
    auto [left, right] = cell_of(x, i / along);
    auto [bottom, top] = cell_of(y, along == 1 ? i : i % along);
    const auto& [values, exponents] = grid[i];
    // Under the next cells, or seams would show.
    right += 0.02 * (right - left);
    top += 0.02 * (top - bottom);
    fmt::format_to(std::back_inserter(block), "{} {} {} {} {} {} {} {}\n", values.front(), values.back(),
                   left, right, bottom, top, exponents.angle.value, exponents.gradient.value);
  }
  return block + "EOD\n";
}

/// Of a logarithmic axis: numbers at 1, 2 and 5 of each decade where there are few decades.
std::string logarithmic_scale(char axis, double least, double greatest) {
  std::string commands = fmt::format("set logscale {}\n", axis);
  if (greatest / least > 1e3) return commands;
  std::string places;
  for (double decade = std::pow(10.0, std::floor(std::log10(least))); decade <= greatest; decade *= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if (digit * decade >= least && digit * decade <= greatest)
        places += fmt::format("{}{:.6g}", places.empty() ? "" : ", ", digit * decade);
  // Ranges without such a place keep gnuplot's own.
  return places.empty() ? commands : commands + fmt::format("set {}tics ({})\n", axis, places);
}

/// Label, scale and range of an axis, out to the ends of the cells.
std::string axis_of(char axis, const VariedNumber& number) {
  const double least = cell_of(number, 0).first, greatest = cell_of(number, number.values.size() - 1).second;
  return fmt::format("set {0}label {1}\nset {0}range [{2}:{3}]\n{4}", axis, gnuplot_quoted(number.path),
                     least, greatest, number.logarithmic ? logarithmic_scale(axis, least, greatest) : "");
}

bool some_lack_angles(const std::vector<VariedExponents>& grid) {
  return std::any_of(grid.begin(), grid.end(),
                     [](const VariedExponents& point) { return !point.exponents.no_angles.empty(); });
}

std::string exponent_panel(const std::string& title, int column, const std::vector<VariedExponents>& grid) {
  double largest = 1e-9;
  for (const VariedExponents& point : grid) {
    const double value = column == 7 ? point.exponents.angle.value : point.exponents.gradient.value;
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const double shown = std::min(largest, 1.0);
  return fmt::format(
      "set title '{}'\nset cbrange [{}:{}]\nset cblabel 'growth a block{}'\n"
      "plot $grid using 1:2:3:4:5:6:{} with boxxyerror fillcolor palette notitle, $angle with lines lw 3 lc "
      "rgb 'black' title 'lambda_a = 0', $gradient with lines lw 3 dt 2 lc rgb '#007700' title 'lambda_g = "
      "0'\n",
      title, -shown, shown, largest > shown ? " (cut at 1)" : "", column);
}

}  // namespace

std::string block_script(const SampledBlock& theory, const SampledBlock& networks) {
  const bool sampled = !networks.tokens.empty();
  std::string script = gnuplot_canvas(theory.gradients.empty() ? 1200 : 1500, 480) +
                       tokens_block("theory", theory.tokens),
              plots;
  if (sampled) script += tokens_block("networks", networks.tokens);
  for (std::size_t k = 0; k < theory.gradients.size(); ++k) {
    const LayerGradients& layer = theory.gradients[k];
    script += layer_block("theory", k, layer);
    if (has_matrices(theory.gradients, k)) continue;
    // Query and key have the same gradients: dashes show both.
    plots += fmt::format(
        ", $theory{} with lines lw 2 dt {} lc {} title {}", k, k % 3 + 1, k + 1,
        gnuplot_quoted(fmt::format("{}{} {}", layer.kind,
                                   layer.parameter.empty() ? "" : " " + layer.parameter, layer.path)));
    if (!sampled) continue;
    script += layer_block("networks", k, networks.gradients[k]);
    plots += fmt::format(", $networks{} with yerrorbars pt 7 ps 0.7 lc {} notitle", k, k + 1);
  }
  const std::string points = sampled ? ", $networks using 1:2:3 with yerrorbars pt 7 lc 1 notitle, $networks "
                                       "using 1:4:5 axes x1y2 with yerrorbars pt 7 lc 2 notitle"
                                     : "";
  // The key of all parameters takes the place of a panel.
  const double left = theory.gradients.empty() ? 0.5 : 0.35;
  script += fmt::format(
      "set multiplot{0}\nset origin 0,0\nset size {1},0.95\nset xlabel 'block'\n{2}set ylabel 'squared norm "
      "/ width'\nset ytics nomirror\n"
      "set offsets graph 0.03, graph 0.03\nset autoscale xfix\n"
      "set y2label 'cosine'\nset y2tics\nset y2range [-0.05:1.05]\nset key bottom right opaque\n"
      "plot $theory using 1:2 with lines lw 2 lc 1 title 'squared norm', $theory using 1:4 axes x1y2 with "
      "lines lw 2 lc 2 title 'cosine'{3}\n"
      "unset y2label\nunset y2tics\nset ytics mirror\nset key outside right top Left reverse\n"
      "set origin {1},0\nset size {4},0.95\n",
      sampled ? " title 'lines: theory, points: networks with one standard error'" : "", left,
      theory.tokens.size() <= 13 ? "set xtics 1\n" : "", points, 1 - left);
  script +=
      theory.gradients.empty()
          ? "set ylabel 'log10 squared Jacobian norm'\nplot $theory using 1:6 with linespoints pt 7 ps 0.6 "
            "lw 2 notitle\n"
          : "set logscale y\nset format y '%g'\nset ylabel 'squared gradient of the parameters'\n"
            "plot keyentry with lines lw 2 lc rgb 'black' title 'theory'" +
                std::string(sampled ? ", keyentry with points pt 7 ps 0.7 lc rgb 'black' title 'networks'"
                                    : "") +
                plots + "\n";
  return script + "unset multiplot\n";
}

std::string variation_script(const BlockVariation& variation, const std::vector<VariedExponents>& grid,
                             const ZeroLine& angle_zeros, const ZeroLine& gradient_zeros) {
  const auto& numbers = variation.numbers();
  const std::string data =
      grid_block_of(grid, variation) + "set datafile missing 'nan'\n" + axis_of('x', numbers.front());
  if (numbers.size() == 1)
    return gnuplot_canvas(760, 520) + point_block("angle", angle_zeros) +
           point_block("gradient", gradient_zeros) + data +
           "set ylabel 'growth a block'\nset xzeroaxis\nset key outside below\n"
           "plot $grid using 1:7 with lines lw 2 lc 1 title 'angles, ln(1 + lambda_a)" +
           (some_lack_angles(grid) ? ", where equal tokens stay equal" : "") +
           "', $grid using 1:8 with "
           "lines lw 2 lc 2 title 'gradients, lambda_g', $angle with points pt 7 ps 1.4 lc 1 title 'lambda_a "
           "= 0', $gradient with points pt 7 ps 1.4 lc 2 title 'lambda_g = 0'\n";
  return gnuplot_canvas(1300, 560) + segment_block("angle", angle_zeros) +
         segment_block("gradient", gradient_zeros) + data + axis_of('y', numbers.back()) +
         "set multiplot layout 1,2\nset palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n"
         "set style fill solid noborder\nset tics out nomirror\nset key outside below\n"
         "set object 1 rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb '#cccccc'\n" +
         exponent_panel(std::string("angle exponent ln(1 + lambda_a)") +
                            (some_lack_angles(grid) ? "; grey: equal tokens do not stay equal" : ""),
                        7, grid) +
         exponent_panel("gradient exponent lambda_g", 8, grid) + "unset multiplot\n";
}

}  // namespace widelimit::cli
