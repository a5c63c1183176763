#include "cli/block_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/gnuplot.hpp"

namespace widelimit::cli {
namespace {

using propagation::LayerGradients;
using propagation::PropagatedTokens;
using propagation::SampledBlock;

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

/// Whether a layer's matrices stand behind it, which are drawn in its place.
bool has_matrices(const std::vector<LayerGradients>& gradients, std::size_t k) {
  return gradients[k].parameter.empty() && k + 1 < gradients.size() && !gradients[k + 1].parameter.empty() &&
         gradients[k + 1].path == gradients[k].path;
}

std::string point_block(const char* name, const std::vector<std::vector<double>>& points) {
  std::string block = fmt::format("${} << EOD\n", name);
  // gnuplot refuses empty data.
  if (points.empty()) block += "1e30 1e30\n";
  for (const auto& point : points)
    fmt::format_to(std::back_inserter(block), "{} {}\n", point.front(),
                   point.size() > 1 ? point.back() : 0.0);
  return block + "EOD\n";
}

std::string grid_block_of(const std::vector<VariedExponents>& grid, std::size_t along) {
  std::string block = "$grid << EOD\n";
  for (std::size_t i = 0; i < grid.size(); ++i) {
    if (i != 0 && along > 0 && i % along == 0) block += "\n";
    const auto& [values, exponents] = grid[i];
    fmt::format_to(std::back_inserter(block), "{} {} {} {}\n", values.front(), values.back(),
                   exponents.angle.value, exponents.gradient.value);
  }
  return block + "EOD\n";
}

std::string exponent_panel(const char* title, int column, const std::vector<VariedExponents>& grid,
                           const BlockVariation& variation) {
  double largest = 1e-9;
  for (const VariedExponents& point : grid) {
    const double value = column == 3 ? point.exponents.angle.value : point.exponents.gradient.value;
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const auto& x = variation.numbers().front().values;
  const auto& y = variation.numbers().back().values;
  return fmt::format(
      "set title '{}'\nset cbrange [{}:{}]\nset xrange [{}:{}]\nset yrange [{}:{}]\n"
      "plot $grid using 1:2:{} with points pt 5 ps 2 palette notitle, "
      "$angle with points pt 7 ps 0.8 lc rgb 'black' title 'lambda_a = 0', "
      "$gradient with points pt 6 ps 1 lc rgb '#007700' title 'lambda_g = 0'\n",
      title, -std::min(largest, 1.0), std::min(largest, 1.0), x.front(), x.back(), y.front(), y.back(),
      column);
}

}  // namespace

std::string block_script(const SampledBlock& theory, const SampledBlock& networks) {
  const bool sampled = !networks.tokens.empty();
  std::string script = gnuplot_canvas(1200, 480) + tokens_block("theory", theory.tokens), plots;
  if (sampled) script += tokens_block("networks", networks.tokens);
  for (std::size_t k = 0; k < theory.gradients.size(); ++k) {
    const LayerGradients& layer = theory.gradients[k];
    script += layer_block("theory", k, layer);
    if (has_matrices(theory.gradients, k)) continue;
    plots += fmt::format("{}$theory{} with lines lw 2 lc {} title {}", plots.empty() ? "" : ", ", k, k + 1,
                         gnuplot_quoted(fmt::format("{} {} {}", layer.kind, layer.parameter, layer.path)));
    if (!sampled) continue;
    script += layer_block("networks", k, networks.gradients[k]);
    plots += fmt::format(", $networks{} with yerrorbars pt 7 ps 0.7 lc {} notitle", k, k + 1);
  }
  const std::string points = sampled ? ", $networks using 1:2:3 with yerrorbars pt 7 lc 1 notitle, "
                                       "$networks using 1:4:5 axes x1y2 with yerrorbars pt 7 lc 2 notitle"
                                     : "";
  script += fmt::format(
      "set multiplot layout 1,2{}\nset xlabel 'block'\nset ylabel 'squared norm / width'\nset ytics "
      "nomirror\n"
      "set offsets graph 0.03, graph 0.03\nset autoscale xfix\n"
      "set y2label 'cosine'\nset y2tics\nset y2range [-0.05:1.05]\nset key bottom right opaque\n"
      "plot $theory using 1:2 with lines lw 2 lc 1 title 'squared norm', "
      "$theory using 1:4 axes x1y2 with lines lw 2 lc 2 title 'cosine'{}\n"
      "unset y2label\nunset y2tics\nset ytics mirror\nset key outside below\n",
      sampled ? " title 'lines: theory, points: networks'" : "", points);
  script +=
      theory.gradients.empty()
          ? "set ylabel 'log10 squared Jacobian norm'\nplot $theory using 1:6 with linespoints pt 7 ps 0.6 "
            "lw 2 "
            "notitle\n"
          : "set logscale y\nset format y '%.0e'\nset ylabel 'squared gradient of the layer'\nplot " + plots +
                "\n";
  return script + "unset multiplot\n";
}

std::string variation_script(const BlockVariation& variation, const std::vector<VariedExponents>& grid,
                             const std::vector<std::vector<double>>& angle_zeros,
                             const std::vector<std::vector<double>>& gradient_zeros) {
  const auto& numbers = variation.numbers();
  std::string script = gnuplot_canvas(numbers.size() == 1 ? 760 : 1300, 520) +
                       point_block("angle", angle_zeros) + point_block("gradient", gradient_zeros);
  const std::string label = gnuplot_quoted(numbers.front().path);
  if (numbers.size() == 1)
    return script + grid_block_of(grid, 0) +
           fmt::format(
               "set xlabel {}\nset ylabel 'growth a block'\nset xzeroaxis\nset xrange [{}:{}]\nset key "
               "outside below\n"
               "plot $grid using 1:3 with lines lw 2 title 'angles, ln(1 + lambda_a)', "
               "$grid using 1:4 with lines lw 2 title 'gradients, lambda_g', "
               "$angle with points pt 7 lc rgb 'black' notitle, $gradient with points pt 6 lc rgb 'black' "
               "notitle\n",
               label, numbers.front().values.front(), numbers.front().values.back());
  return script + grid_block_of(grid, numbers.back().values.size()) +
         fmt::format(
             "set multiplot layout 1,2\nset palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n"
             "set xlabel {}\nset ylabel {}\nset key outside below\n",
             label, gnuplot_quoted(numbers.back().path)) +
         exponent_panel("angle exponent ln(1 + lambda_a)", 3, grid, variation) +
         exponent_panel("gradient exponent lambda_g", 4, grid, variation) + "unset multiplot\n";
}

}  // namespace widelimit::cli
