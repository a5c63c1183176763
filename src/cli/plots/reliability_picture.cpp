#include "cli/plots/reliability_picture.hpp"

#include <fmt/format.h>

#include "cli/plots/gnuplot.hpp"

namespace widelimit::cli {
namespace {

constexpr const char* curve_colours[] = {"#08519c", "#d94801", "#238b45"};

}  // namespace

std::string reliability_script(const std::vector<ReliabilityCurve>& curves, const std::string& title) {
  std::string text = "set terminal pngcairo size 720,820 font 'sans,11'\n";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    text += fmt::format("$curve{} << end\n", i);
    for (const gp::CalibrationBin& bin : curves[i].calibration.bins)
      if (bin.count > 0)
        text += fmt::format("{:.17g} {:.17g} {} {:.17g}\n", bin.mean_confidence, bin.accuracy, bin.count,
                            (bin.lower + bin.upper) / 2);
    text += "end\n";
  }
  text += fmt::format(
      "set multiplot title {} noenhanced\nset xrange [0:1]\nset grid\nset key left top\n"
      "set lmargin 10\nset origin 0,0.3\nset size 1,0.65\nset yrange [0:1]\nset ylabel 'share that is "
      "right'\n"
      "plot x with lines dt 2 lc rgb '#888888' title 'perfectly calibrated'",
      gnuplot_quoted(title));
  for (std::size_t i = 0; i < curves.size(); ++i)
    text += fmt::format(
        ", $curve{} using 1:2 with linespoints pt 7 lw 2 lc rgb '{}' title {} noenhanced", i,
        curve_colours[i % std::size(curve_colours)],
        gnuplot_quoted(fmt::format("{}: ECE {:.4f}", curves[i].name, curves[i].calibration.expected_error)));
  text +=
      "\nset origin 0,0\nset size 1,0.32\nset key off\nset yrange [0:*]\nset ylabel 'predictions'\n"
      "set xlabel 'confidence'\nplot ";
  for (std::size_t i = 0; i < curves.size(); ++i)
    text += fmt::format("{}$curve{} using 4:3 with boxes lw 2 lc rgb '{}'", i == 0 ? "" : ", ", i,
                        curve_colours[i % std::size(curve_colours)]);
  return text + "\nunset multiplot\n";
}

}  // namespace widelimit::cli
