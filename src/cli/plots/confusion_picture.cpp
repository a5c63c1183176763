#include "cli/plots/confusion_picture.hpp"

#include <fmt/format.h>

#include <iterator>

#include "cli/plots/gnuplot.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {
namespace {

/// Up to this many classes every cell shows its count.
constexpr Index largest_annotated = 20;

/// Names at the places of their classes; long ones are turned on the horizontal axis.
std::string named_tics(const std::vector<std::string>& class_names) {
  constexpr std::size_t short_name = 4;
  std::string tics;
  bool turned = false;
  for (std::size_t k = 0; k < class_names.size(); ++k) {
    fmt::format_to(std::back_inserter(tics), "{}{} {}", k == 0 ? "" : ", ",
                   gnuplot_quoted_tic(class_names[k]), k);
    turned = turned || class_names[k].size() > short_name;
  }
  return fmt::format("set xtics ({0}) noenhanced{1}\nset ytics ({0}) noenhanced\n", tics,
                     turned ? " rotate by 35 right" : "");
}

}  // namespace

std::string confusion_script(const gp::ConfusionMatrix& matrix, const std::string& title,
                             const std::vector<std::string>& class_names) {
  std::string text = fmt::format(
      "set terminal pngcairo size 900,820 font 'sans,11'\nset title {} noenhanced\n"
      "set xlabel 'predicted class'\nset ylabel 'true class'\nset cblabel 'inputs'\nunset key\n"
      "set palette defined (0 '#ffffff', 1 '#08519c')\nset size ratio -1\nset tics out nomirror\n"
      "set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\n",
      gnuplot_quoted(title), matrix.cols() - 1, matrix.rows() - 1);
  text += "$counts << end\n";
  for (Index row = 0; row < matrix.rows(); ++row)
    for (Index column = 0; column < matrix.cols(); ++column)
      fmt::format_to(std::back_inserter(text), "{} {} {}\n", column, row, matrix(row, column));
  text += "end\n";
  if (matrix.rows() > largest_annotated)
    text += "set xtics autofreq\nset ytics autofreq\n";
  else
    text += named_tics(class_names);
  // Counts stand out against dark and light cells alike.
  const auto half = static_cast<double>(matrix.maxCoeff()) / 2;
  text += "plot $counts using 1:2:3 with image";
  if (matrix.rows() <= largest_annotated)
    text += fmt::format(
        ", $counts using 1:2:(sprintf('%d', $3)):($3 > {} ? 0xffffff : 0x000000) with labels textcolor rgb "
        "variable",
        half);
  return text + "\n";
}

}  // namespace widelimit::cli
