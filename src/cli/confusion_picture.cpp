#include "cli/confusion_picture.hpp"

#include <fmt/format.h>

#include <iterator>

#include "cli/gnuplot.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {
namespace {

/// Up to this many classes every cell shows its count.
constexpr Index largest_annotated = 20;

}  // namespace

std::string confusion_script(const gp::ConfusionMatrix& matrix, const std::string& title) {
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
  text += "set xtics 1\nset ytics 1\n";
  if (matrix.rows() > largest_annotated) text += "set xtics autofreq\nset ytics autofreq\n";
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
