#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "widelimit/results/picture.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::results {

std::string gnuplot_quoted(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,:;()=+-/_",
                             digits = "0123456789";
  std::string result = "\"";
  // Some versions of gnuplot read a fourth digit as part of an escape: none may follow as it is.
  bool after_escape = false;
  for (const char c : visible_text(text)) {
    const bool as_it_is = plain.find(c) != std::string_view::npos ||
                          (digits.find(c) != std::string_view::npos && !after_escape);
    if (as_it_is)
      result += c;
    else
      fmt::format_to(std::back_inserter(result), "\\{:03o}", static_cast<unsigned char>(c));
    after_escape = !as_it_is;
  }
  return result + "\"";
}

std::string gnuplot_quoted_tic(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '%' ? std::string("%%") : std::string(1, c);
  return gnuplot_quoted(doubled);
}

namespace {

/// The numbers of a series as a block of this name.
std::string block_of(const std::string& name, const Series& series) {
  std::string block = fmt::format("${} << EOD\n", name);
  const std::size_t rows = series.columns.front().size();
  for (std::size_t row = 0; row < rows; ++row) {
    const char* separator = "";
    for (std::size_t k = 0; k < series.columns.size() && !std::isnan(series.columns[0][row]); ++k)
      fmt::format_to(std::back_inserter(block), "{}{}", std::exchange(separator, " "),
                     series.columns[k][row]);
    if (series.draw == Draw::labels)
      fmt::format_to(std::back_inserter(block), " {}", gnuplot_quoted(series.texts[row]));
    block += "\n";
  }
  // gnuplot refuses empty data.
  if (rows == 0) block += "nan nan\n";
  return block + "EOD\n";
}

std::string colour_of(const Series& series) {
  return series.colour > 0 ? fmt::format(" lc {}", series.colour) : fmt::format(" lc rgb '{}'", series.rgb);
}

std::string line_of(const Series& series) {
  return fmt::format(" lw {}{}", series.width, series.dash > 1 ? fmt::format(" dt {}", series.dash) : "");
}

std::string mark_of(const Series& series) { return fmt::format(" pt {} ps {}", series.mark, series.size); }

std::string style_of(const Series& series, Draw draw) {
  switch (draw) {
    case Draw::lines:
      return "lines" + line_of(series) + colour_of(series);
    case Draw::points:
      return "points" + mark_of(series) + colour_of(series);
    case Draw::line_points:
      return "linespoints" + mark_of(series) + line_of(series) + colour_of(series);
    case Draw::bars:
      return "yerrorbars" + mark_of(series) + line_of(series) + colour_of(series);
    case Draw::joined_bars:
      return "yerrorlines" + mark_of(series) + line_of(series) + colour_of(series);
    case Draw::cross_bars:
      return "xyerrorbars" + mark_of(series) + colour_of(series);
    case Draw::steps:
      return "histeps" + line_of(series) + colour_of(series);
    case Draw::cells:
      return "image";
    case Draw::boxes:
      return "boxxyerror fillcolor palette";
    case Draw::arrows:
      return "vectors head size 0.008,25" + colour_of(series);
    case Draw::labels:
      return "labels";
    case Draw::none:
      return style_of(series, series.draw_as);
  }
  throw std::logic_error("a way of drawing that is none");
}

std::string columns_used(const Series& series) {
  std::string text = "1";
  const std::size_t count = series.columns.size() + (series.draw == Draw::labels ? 1 : 0);
  for (std::size_t k = 2; k <= count; ++k) text += fmt::format(":{}", k);
  return text;
}

/// What plots a series, whose numbers are in a block of this name.
std::string plot_of(const std::string& block, const Series& series) {
  const std::string title = series.name.empty() ? "notitle" : "title " + gnuplot_quoted(series.name);
  if (series.draw == Draw::none)
    return fmt::format("keyentry with {} {}, ", style_of(series, series.draw_as), title);
  return fmt::format("${} using {}{} with {} {}, ", block, columns_used(series),
                     series.on_second_axis ? " axes x1y2" : "", style_of(series, series.draw), title);
}

/// An end of a range: what is not given follows the data.
std::string end_of(const std::optional<double>& end) { return end ? fmt::format("{}", *end) : "*"; }

std::string axis_of(const std::string& axis, const Axis& given) {
  std::string text;
  const auto add = [&](const std::string& line) { text += line + "\n"; };
  if (!given.label.empty()) add(fmt::format("set {}label {}", axis, gnuplot_quoted(given.label)));
  if (given.logarithmic) add("set logscale " + axis);
  if (given.from || given.to)
    add(fmt::format("set {}range [{}:{}]", axis, end_of(given.from), end_of(given.to)));
  if (!given.number_format.empty()) add(fmt::format("set format {} '{}'", axis, given.number_format));
  if (!given.has_tics) add(fmt::format("unset {}tics", axis));
  if (given.tic_step > 0) add(fmt::format("set {}tics {}", axis, given.tic_step));
  if (given.named_tics.empty()) return text;
  std::string tics;
  for (const auto& [at, name] : given.named_tics)
    tics += fmt::format("{}{}{:.6g}", tics.empty() ? "" : ", ",
                        name.empty() ? "" : gnuplot_quoted_tic(name) + " ", at);
  add(fmt::format("set {}tics ({})", axis, tics));
  return text;
}

const char* legend_of(Legend legend) {
  switch (legend) {
    case Legend::automatic:
      return "";
    case Legend::outside:
      return "set key outside\n";
    case Legend::outside_below:
      return "set key outside below\n";
    case Legend::right_column:
      return "set key outside right top Left reverse\n";
    case Legend::top_left:
      return "set key top left opaque\n";
    case Legend::bottom_left:
      return "set key bottom left opaque\n";
    case Legend::bottom_right:
      return "set key bottom right opaque\n";
  }
  throw std::logic_error("a legend's place that is none");
}

const char* palette_of(Palette palette) {
  switch (palette) {
    case Palette::diverging:
      return "set palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\n";
    case Palette::white_to_black:
      return "set palette gray negative\n";
    case Palette::black_to_white:
      return "set palette gray\n";
    case Palette::viridis:
      return "set palette defined (0 '#440154', 1 '#21918c', 2 '#fde725')\n";
  }
  throw std::logic_error("a palette that is none");
}

std::string note_text(const Note& note) {
  return fmt::format(
      "set label {} at {}{}, {}{}{}{}\n", gnuplot_quoted(note.text), note.x_of_panel ? "graph " : "first ",
      note.x, note.y_of_panel ? "graph " : "first ", note.y, note.centred ? " center" : "",
      note.mark > 0 ? fmt::format(" point pt {} ps 1.6 lc {} front", note.mark, note.colour) : "");
}

std::string rule_text(const Rule& rule) {
  const std::string style = fmt::format("nohead{}{} lw {} lc {}\n", rule.in_front ? " front" : "",
                                        rule.dash > 1 ? fmt::format(" dt {}", rule.dash) : "", rule.width,
                                        rule.colour > 0 ? fmt::format("{}", rule.colour) : "rgb 'red'");
  return rule.upright
             ? fmt::format("set arrow from first {0}, graph 0 to first {0}, graph 1 {1}", rule.x, style)
             : fmt::format("set arrow from first {}, first {} to first {}, first {} {}", rule.x, rule.y,
                           rule.to_x, rule.y, style);
}

bool draws_colours(const Panel& panel) {
  return std::ranges::any_of(panel.series, [](const Series& series) {
    return series.draw == Draw::cells || series.draw == Draw::boxes;
  });
}

/// All that is set for a panel.
std::string settings_of(const Panel& panel) {
  std::string text = panel.grid ? "set grid\n" : "";
  if (panel.place) {
    const auto [left, bottom, width, height] = *panel.place;
    text += fmt::format("set origin {},{}\nset size {},{}\n", left, bottom, width, height);
  }
  text += legend_of(panel.legend);
  if (panel.margin > 0)
    text += fmt::format("set autoscale xfix\nset offsets graph {0}, graph {0}\n", panel.margin);
  if (!panel.title.empty()) text += fmt::format("set title {}\n", gnuplot_quoted(panel.title));
  text += axis_of("x", panel.x) + axis_of("y", panel.y);
  if (!panel.second_y.label.empty())
    text += "set ytics nomirror\nset y2tics\n" + axis_of("y2", panel.second_y);
  if (draws_colours(panel)) text += palette_of(panel.palette) + axis_of("cb", panel.colours);
  if (panel.zero_line) text += "set xzeroaxis\n";
  if (panel.grey_ground)
    text +=
        "set style fill solid noborder\nset tics out nomirror\n"
        "set object 1 rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb '#cccccc'\n";
  for (const Note& note : panel.notes) text += note_text(note);
  for (const Rule& rule : panel.rules) text += rule_text(rule);
  return text;
}

/// "b3_0" of the first series of the fourth panel.
std::string block_name(std::size_t panel, std::size_t series) { return fmt::format("b{}_{}", panel, series); }

std::string panel_commands(const Panel& panel, std::size_t number) {
  std::string text = settings_of(panel) + "plot ";
  for (std::size_t k = 0; k < panel.series.size(); ++k)
    text += plot_of(block_name(number, k), panel.series[k]);
  return text + (panel.series.empty() ? "2 notitle\n" : "\n");
}

}  // namespace

Panel empty_panel(Panel panel, const std::string& why) {
  for (Axis* axis : {&panel.x, &panel.y}) {
    axis->has_tics = axis->logarithmic = false;
    axis->from = 0;
    axis->to = 1;
  }
  panel.series.clear();
  panel.rules.clear();
  panel.margin = 0;
  panel.legend = Legend::automatic;
  panel.notes = {{.text = why, .x = 0.5, .y = 0.5, .x_of_panel = true, .y_of_panel = true}};
  return panel;
}

std::string gnuplot_script(const Picture& picture) {
  std::string data, commands;
  const std::size_t panels = picture.panels.size();
  for (std::size_t p = 0; p < panels; ++p) {
    const Panel& panel = picture.panels[p];
    for (std::size_t k = 0; k < panel.series.size(); ++k)
      if (!panel.series[k].columns.empty()) data += block_of(block_name(p, k), panel.series[k]);
    commands.append(p == 0 ? "" : "reset\n").append(panel_commands(panel, p));
  }
  if (panels > 1 || !picture.title.empty()) {
    const std::size_t columns = picture.columns > 0 ? static_cast<std::size_t>(picture.columns) : panels;
    const std::string layout = picture.panels.front().place
                                   ? ""
                                   : fmt::format(" layout {},{}", (panels + columns - 1) / columns, columns),
                      title = picture.title.empty() ? "" : " title " + gnuplot_quoted(picture.title);
    commands = fmt::format("set multiplot{}{}\n{}unset multiplot\n", layout, title, commands);
  }
  return fmt::format("set terminal pngcairo{} size {},{}{} font ',{}'\n{}{}",
                     picture.subscripts ? " enhanced" : "", picture.width, picture.height,
                     picture.subscripts ? "" : " noenhanced", picture.letters, data, commands);
}

}  // namespace widelimit::results
