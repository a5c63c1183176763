#include "cli/heads/heads_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/heads/heads_times.hpp"
#include "cli/plots/gnuplot.hpp"

namespace widelimit::cli {
namespace {

/// Columns whose names begin with `prefix`, drawn in `style`. Those of several prefixes share the colours of what
/// stands after the prefix.
struct CurveGroup {
  const char* prefix;
  const char* style;
  bool named;  ///< Has an entry in the key.
};

struct HeadsPicture {
  const char* experiment;
  const char* x;
  const char* title;
  const char* x_label;
  const char* y_label;
  std::vector<CurveGroup> groups;
  const char* settings;
  bool medians;                ///< A line through the medians at each x.
  bool logarithmic_x = false;  ///< Where x of 0, the start, cannot be drawn.
};

constexpr const char* overlaps = "overlap m of head and feature";
constexpr const char* time_label = "time tau";

/// `prefix`: of the columns of times.
HeadsPicture times_picture(const char* experiment, const char* y_label, const char* prefix) {
  return {experiment,
          "log_scale",
          "points: starts, lines: their medians, triangles at the upper edge: starts that never got there",
          "ln(sqrt(D) / eta)",
          y_label,
          {{prefix, "points pt 7 ps 0.9", false}},
          "",
          true};
}

const std::vector<HeadsPicture>& pictures() {
  static const std::vector<HeadsPicture> list = {
      {"flow", "tau", "gradient flow", time_label, overlaps, {{"m", "lines lw 2", true}}, "", false, true},
      {"sgd", "tau", "online SGD", time_label, overlaps, {{"m", "linespoints pt 7 ps 0.5", true}}, "", false},
      {"compare",
       "tau",
       "points: online SGD, lines: gradient flow",
       time_label,
       overlaps,
       {{"m_sgd_", "points pt 7 ps 0.6", false}, {"m_flow_", "lines lw 2", true}},
       "",
       false},
      {"resampling",
       "tau",
       "points: fresh samples at every step, lines: samples kept",
       time_label,
       overlaps,
       {{"m_fresh_", "points pt 7 ps 0.6", false}, {"m_kept_", "lines lw 2", true}},
       "",
       false},
      {"prune",
       "removed",
       "heads removed one by one, a line a start",
       "heads removed",
       "loss on fresh samples",
       {{"loss", "linespoints pt 7 ps 0.7", true}},
       "set xtics 1",
       false},
      times_picture("phase-transition", "specialisation time", "specialisation_time"),
      times_picture("feature-times", "specialisation time of a feature", "feature_time"),
      times_picture("digit-times", "specialisation time of a digit", "digit_time")};
  return list;
}

const HeadsPicture* picture_of(std::string_view experiment) {
  const auto place = std::find_if(pictures().begin(), pictures().end(),
                                  [&](const HeadsPicture& one) { return experiment == one.experiment; });
  return place == pictures().end() ? nullptr : &*place;
}

std::size_t column_of(const ResultTable& table, std::string_view name) {
  return static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), name) -
                                  table.columns.begin());
}

/// All rows; an empty line ends the curves of one start.
std::string rows_block(const ResultTable& table) {
  std::string block = "$table << EOD\n";
  const bool starts = table.columns.front() == "start";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (starts && i > 0 && table.rows[i][0] != table.rows[i - 1][0]) block += "\n";
    fmt::format_to(std::back_inserter(block), "{}\n", fmt::join(table.rows[i], " "));
  }
  return block + "EOD\n";
}

/// x and the median of a column with what was not reached as later than
/// all; a gap in the line where that is the median.
std::string medians_block(const ResultTable& table, std::size_t x, std::size_t column) {
  std::map<double, std::vector<double>> values;
  for (const std::vector<double>& row : table.rows) values[row[x]].push_back(row[column]);
  std::string medians = fmt::format("$median{} << EOD\n", column);
  for (const auto& [at, all] : values) {
    const double median = censored_median(all);
    medians += std::isnan(median) ? "\n" : fmt::format("{} {}\n", at, median);
  }
  // gnuplot refuses empty data.
  return medians + "nan nan\nEOD\n";
}

/// Triangles at the upper edge over every x where a start did not get there: they have no height of their own.
std::string missing_marks(const ResultTable& table, std::size_t x, std::size_t column, std::size_t colour) {
  std::set<double> places;
  for (const std::vector<double>& row : table.rows)
    if (std::isnan(row[column])) places.insert(row[x]);
  std::string marks;
  for (const double place : places)
    fmt::format_to(std::back_inserter(marks),
                   "set label '' at first {}, graph {:.3f} point pt 8 ps 1.6 lc {} front\n", place,
                   1 - 0.025 * static_cast<double>(colour), (colour - 1) % 8 + 1);
  return marks;
}

/// Whether any value can be drawn: gnuplot fails where there is none.
bool has_values(const HeadsPicture& picture, const ResultTable& table, std::size_t x) {
  const auto drawn = [&](const std::string& name) {
    return std::any_of(picture.groups.begin(), picture.groups.end(),
                       [&](const CurveGroup& group) { return name.starts_with(group.prefix); });
  };
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    for (const std::vector<double>& row : table.rows)
      if (drawn(table.columns[column]) && std::isfinite(row[column]) &&
          (!picture.logarithmic_x || row[x] > 0))
        return true;
  return false;
}

/// Empty axes that say so.
std::string empty_script(const HeadsPicture& picture) {
  return fmt::format(
      "set terminal pngcairo enhanced size 1000,650\nset grid\nset title '{}'\nset xlabel '{}'\nset ylabel "
      "'{}'\n{}\n",
      picture.title, picture.x_label, picture.y_label, empty_axes("no value up to the last time"));
}

/// A style in one colour. gnuplot has eight; those that come again have other marks and dashes.
std::string coloured(std::string style, std::size_t colour) {
  constexpr std::size_t colours = 8;
  constexpr int marks[] = {7, 5, 9, 13};
  const std::size_t round = (colour - 1) / colours % std::size(marks), mark = style.find("pt 7");
  if (mark != std::string::npos) style.replace(mark, 4, fmt::format("pt {}", marks[round]));
  if (style.starts_with("line")) style += fmt::format(" dt {}", round + 1);
  return fmt::format("{} lc {}", style, (colour - 1) % colours + 1);
}

/// "m of head 0, feature 1" would fill the key: columns are named as in the table, without what all have in common.
std::string key_name(const std::string& column, std::string_view prefix) {
  const std::string rest = column.substr(prefix.size());
  if (prefix.starts_with("m")) return "m_{" + rest + "}";
  if (prefix == "feature_time") return "feature " + rest.substr(1);
  if (rest.starts_with("_")) return rest.substr(1);
  std::string words = column;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// A row of pixels a head, a block of rows a sequence: token 0 carries the signal.
std::string attention_script(const ResultTable& table) {
  const auto greatest = [&](std::size_t column) {
    double value = 0;
    for (const auto& row : table.rows) value = std::max(value, row[column]);
    return value;
  };
  const double heads = greatest(1) + 1, sequences = greatest(0) + 1, tokens = greatest(2) + 1;
  std::string lines;
  for (double sequence = 1; sequence < sequences; ++sequence)
    fmt::format_to(std::back_inserter(lines),
                   "set arrow from -0.5, {0} to {1}, {0} nohead front lw 2 lc rgb 'red'\n",
                   sequence * heads - 0.5, tokens - 0.5);
  return fmt::format(
      "set terminal pngcairo enhanced size 700,800\n{}set title 'attention of each head; token 0 carries the "
      "signal'\nset xlabel 'token'\nset ylabel 'heads, a block a sequence'\nset cblabel 'weight over H'\n"
      "set palette gray negative\nset xtics 1\nunset ytics\nset xrange [-0.5:{}]\nset yrange "
      "[{}:-0.5]\n{}plot $table using 3:($1*{}+$2):4 with image notitle\n",
      rows_block(table), tokens - 0.5, heads * sequences - 0.5, lines, heads);
}

/// The keys as pictures side by side, where they are squares; else as curves.
std::string keys_script(const ResultTable& table) {
  constexpr std::size_t first = 4;
  const std::size_t pixels = table.columns.size() - first;
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  const std::size_t width = side * side == pixels ? side : pixels, height = pixels / width;
  std::string data = "$keys << EOD\n", titles;
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t h = 0; h < table.rows.size(); ++h)
      for (std::size_t x = 0; x < width; ++x)
        fmt::format_to(std::back_inserter(data), "{} {} {}\n", h * width + x, y,
                       table.rows[h][first + y * width + x]);
  for (std::size_t h = 0; h < table.rows.size(); ++h)
    fmt::format_to(std::back_inserter(titles), "set label 'class {}, {:.2f}' at {}, {} center\n",
                   table.rows[h][2], table.rows[h][3],
                   static_cast<double>(h * width) + static_cast<double>(width) / 2,
                   static_cast<double>(height) + 1.5);
  return fmt::format(
      "set terminal pngcairo enhanced size {},220\n{}EOD\n{}set title 'keys of the heads, with the class "
      "that each is most alike and their cosine'\nset palette gray\nset cblabel 'key'\nunset tics\nset "
      "xrange [-0.5:{}]\n"
      "set yrange [{}:-0.5]\nplot $keys using 1:2:3 with image notitle\n",
      std::max<std::size_t>(130 * table.rows.size(), 700), data, titles,
      static_cast<double>(table.rows.size() * width) - 0.5, static_cast<double>(height) + 3);
}

}  // namespace

std::string empty_axes(std::string_view why) {
  return fmt::format(
      "set label '{}' at graph 0.5, graph 0.5 center\nset xrange [0:1]\nset yrange [0:1]\nunset xtics\n"
      "unset ytics\nplot 2 notitle",
      why);
}

bool has_heads_picture(std::string_view experiment) {
  return experiment == "attention" || experiment == "digits" || picture_of(experiment) != nullptr;
}

std::string heads_script(std::string_view experiment, const ResultTable& table) {
  if (experiment == "attention") return attention_script(table);
  if (experiment == "digits") return keys_script(table);
  const HeadsPicture& picture = *picture_of(experiment);
  const std::size_t x = column_of(table, picture.x);
  if (!has_values(picture, table, x)) return empty_script(picture);
  std::map<std::string, std::size_t> colours;
  std::string data = rows_block(table), curves;
  for (const CurveGroup& group : picture.groups)
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string& name = table.columns[column];
      if (!name.starts_with(group.prefix)) continue;
      const std::string quantity = name.substr(std::string_view(group.prefix).size());
      const std::size_t colour = colours.try_emplace(quantity, colours.size() + 1).first->second;
      const std::string title = gnuplot_quoted(key_name(name, group.prefix));
      fmt::format_to(std::back_inserter(curves), "$table using {}:{} with {} {}, ", x + 1, column + 1,
                     coloured(group.style, colour), group.named ? "title " + title : "notitle");
      if (!picture.medians) continue;
      data += medians_block(table, x, column);
      const std::string style = coloured("linespoints pt 1 ps 1.5 lw 2", colour);
      data += missing_marks(table, x, column, colour);
      // An entry of its own: gnuplot leaves out that of a line without points.
      fmt::format_to(std::back_inserter(curves),
                     "$median{} using 1:2 with {} notitle, keyentry with {} title {}, ", column, style, style,
                     title);
    }
  return fmt::format(
      "{}set title '{}'\nset xlabel '{}'\nset ylabel '{}'\nset datafile missing 'nan'\n{}\n{}plot {}\n",
      heads_canvas, picture.title, picture.x_label, picture.y_label,
      picture.logarithmic_x ? "set logscale x" : picture.settings, data, curves);
}

}  // namespace widelimit::cli
