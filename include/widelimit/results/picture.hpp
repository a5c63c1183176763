#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Pictures as values: what is drawn, of which numbers, on which axes. gnuplot_script() draws them.
namespace widelimit::results {

/// How a series is drawn, and what its columns are after x and y.
enum class Draw {
  lines,
  points,
  line_points,
  bars,         ///< Points with error bars: the error, or both ends.
  joined_bars,  ///< The same, joined by lines.
  cross_bars,   ///< Points with errors in x and y: both errors.
  steps,        ///< Of a histogram, around x.
  cells,        ///< Colours: z on a regular grid.
  boxes,        ///< Colours: left, right, bottom, top, z.
  arrows,       ///< Extents in x and y.
  labels,       ///< `texts` in place of marks.
  none          ///< An entry of the legend alone, in the style of `draw_as`.
};

/// One set of numbers on a panel. A row whose x is NaN interrupts a line.
struct Series {
  Draw draw = Draw::lines;
  std::vector<std::vector<double>> columns = {};
  std::string name = {};  ///< In the legend; empty: not there.
  int colour = 1;         ///< Counted from 1; 0: that of `rgb`.
  std::string rgb = {};
  double width = 1, size = 1;  ///< Of lines and marks.
  int mark = 7, dash = 1;      ///< By gnuplot's numbers; a mark of 0: its own.
  bool on_second_axis = false;
  std::vector<std::string> texts = {};
  Draw draw_as = Draw::lines;
};

struct Axis {
  std::string label = {};
  std::optional<double> from = {}, to = {};  ///< What is not given follows the data.
  bool logarithmic = false;
  bool has_tics = true;
  double tic_step = 0;  ///< 0: as it comes.
  std::vector<std::pair<double, std::string>> named_tics =
      {};  ///< In place of numbers; an empty text: the number.
  std::string number_format = {};
};

/// A text or a mark at a place of the panel, in units of an axis or from 0 to 1.
struct Note {
  std::string text;
  double x, y;
  bool x_of_panel = false, y_of_panel = false, centred = true;
  int mark = 0, colour = 1;  ///< 0: none.
};

/// A straight line through the whole height of the panel, or from (x, y) to (to_x, y).
struct Rule {
  double x, y = 0, to_x = 0;
  bool upright = true, in_front = true;
  int colour = 0, dash = 1;
  double width = 2;
};

enum class Legend { automatic, outside, outside_below, right_column, top_left, bottom_left, bottom_right };
/// Colours of numbers: white at 0 between blue and red, white to black, black to white, or dark to light.
enum class Palette { diverging, white_to_black, black_to_white, viridis };

/// One pair of axes.
struct Panel {
  std::string title = {};
  Axis x = {}, y = {}, second_y = {}, colours = {};
  Palette palette = Palette::diverging;
  Legend legend = Legend::automatic;
  bool grid = false, zero_line = false, grey_ground = false;
  double margin = 0;  ///< Beyond the data, as a share of the panel; 0: as it comes.
  std::vector<Note> notes = {};
  std::vector<Rule> rules = {};
  std::vector<Series> series = {};
  std::optional<std::array<double, 4>> place =
      {};  ///< Left, bottom, width and height, as shares of the picture.
};

/// Panels side by side.
struct Picture {
  std::vector<Panel> panels;
  int width = 760, height = 480;  ///< In pixels, of which a hundred are an inch.
  std::string title = {};         ///< Above several panels.
  int columns = 0;                ///< Of panels; 0: all in one row.
  int letters = 11;               ///< Their size in points.
  bool subscripts = false;        ///< Names have them: m_{00}.
};

/// Draws axes that say why there is nothing on them.
[[nodiscard]] Panel empty_panel(Panel panel, const std::string& why);

/// A script for gnuplot that writes a PNG to standard output. Its first line is the terminal and its size.
[[nodiscard]] std::string gnuplot_script(const Picture& picture);

/// A gnuplot string of a text, as visible_text() shows it. Every text that is not a constant of this library passes
/// through it: what gnuplot could read as anything but a letter of the string, quotes and line breaks above all, stands
/// in it as octal digits.
[[nodiscard]] std::string gnuplot_quoted(std::string_view text);

/// The same for the text of a tic, in which gnuplot would put numbers in the place of "%g".
[[nodiscard]] std::string gnuplot_quoted_tic(std::string_view text);

}  // namespace widelimit::results
