#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "specialization/experiments/shared.hpp"

namespace widelimit::specialization {

using results::Draw;
using results::Legend;
using results::Note;
using results::Panel;
using results::Series;

namespace {

constexpr const char *overlaps = "overlap m of head and feature", *time_label = "time tau";

/// One colour a quantity. gnuplot has eight; those that come again have other marks and dashes.
Series coloured(Series series, std::size_t number) {
  constexpr int marks[] = {7, 5, 9, 13};
  const std::size_t round = number / 8;
  series.colour = static_cast<int>(number % 8) + 1;
  if (series.mark == 7) series.mark = marks[round % std::size(marks)];
  if (series.draw != Draw::points) series.dash = static_cast<int>(round % std::size(marks)) + 1;
  return series;
}

/// The numbers of a column beside x; rows without numbers part the starts.
std::vector<std::vector<double>> columns_of(const Table& table, const std::string& x, const std::string& y) {
  const std::vector<double> xs = table.values(x), ys = table.values(y);
  std::vector<double> starts;
  if (table.columns().front().name == "start" && table.columns().front().in_files)
    starts = table.values("start");
  std::vector<std::vector<double>> columns(2);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const bool parts = i > 0 && !starts.empty() && starts[i] != starts[i - 1];
    for (int k = 0; parts && k < 2; ++k) columns[static_cast<std::size_t>(k)].push_back(std::nan(""));
    columns[0].push_back(xs[i]);
    columns[1].push_back(ys[i]);
  }
  return columns;
}

/// "m_{00}" of the column m00 or m_sgd_00: names without what all have in common, which would fill the key.
std::string overlap_name(const std::string& column, std::string_view prefix) {
  return "m_{" + column.substr(prefix.size()) + "}";
}

/// The columns whose names begin with `prefix`, drawn like `style`, in the key if they have a `name_of`.
void add_columns(Panel& panel, const Table& table, const std::string& x, const std::string& prefix,
                 const Series& style, std::string (*name_of)(const std::string&, std::string_view)) {
  std::size_t number = 0;
  for (const std::string& name : table.names()) {
    if (!name.starts_with(prefix)) continue;
    Series series = coloured(style, number++);
    series.columns = columns_of(table, x, name);
    if (name_of != nullptr) series.name = name_of(name, prefix);
    panel.series.push_back(std::move(series));
  }
}

/// Whether any value can be drawn: gnuplot fails where there is none.
bool has_values(const Panel& panel) {
  return std::ranges::any_of(panel.series, [&](const Series& series) {
    for (std::size_t i = 0; !series.columns.empty() && i < series.columns[0].size(); ++i)
      if (std::isfinite(series.columns[1][i]) && (!panel.x.logarithmic || series.columns[0][i] > 0))
        return true;
    return false;
  });
}

Panel curves_panel(const std::string& title, const std::string& x_label, const std::string& y_label) {
  return {.title = title,
          .x = {.label = x_label},
          .y = {.label = y_label},
          .legend = Legend::outside,
          .grid = true,
          .margin = 0.02};
}

Picture curves_picture(Panel panel) {
  if (!has_values(panel)) panel = empty_panel(std::move(panel), "no value up to the last time");
  return {.panels = {std::move(panel)}, .width = 1000, .height = 650, .letters = 12, .subscripts = true};
}

/// Theory as lines, samples as points, in the same colours.
Picture pair_picture(const Results& results, const std::string& title, const std::string& points,
                     const std::string& lines) {
  Panel panel = curves_panel(title, time_label, overlaps);
  add_columns(panel, results.table, "tau", "m_" + points + "_", {.draw = Draw::points, .size = 0.6}, nullptr);
  add_columns(panel, results.table, "tau", "m_" + lines + "_", {.width = 2}, overlap_name);
  return curves_picture(std::move(panel));
}

}  // namespace

Picture flow_picture(const Results& results) {
  Panel panel = curves_panel("gradient flow", time_label, overlaps);
  panel.x.logarithmic = true;  // The start, at 0, cannot be drawn.
  add_columns(panel, results.table, "tau", "m", {.width = 2}, overlap_name);
  return curves_picture(std::move(panel));
}

Picture sgd_picture(const Results& results) {
  Panel panel = curves_panel("online SGD", time_label, overlaps);
  add_columns(panel, results.table, "tau", "m", {.draw = Draw::line_points, .size = 0.5}, overlap_name);
  return curves_picture(std::move(panel));
}

Picture compare_picture(const Results& results) {
  return pair_picture(results, "points: online SGD, lines: gradient flow", "sgd", "flow");
}

Picture resampling_picture(const Results& results) {
  return pair_picture(results, "points: fresh samples at every step, lines: samples kept", "fresh", "kept");
}

Picture prune_picture(const Results& results) {
  Panel panel =
      curves_panel("heads removed one by one, a line a start", "heads removed", "loss on fresh samples");
  panel.x.tic_step = 1;
  add_columns(panel, results.table, "removed", "loss", {.draw = Draw::line_points, .size = 0.7},
              [](const std::string& column, std::string_view) { return column; });
  return curves_picture(std::move(panel));
}

namespace {

/// x and the median of a column with what was not reached as later than all; a gap in the line where that is the
/// median.
Series median_line(const std::map<double, std::vector<double>>& values, std::size_t number) {
  Series series =
      coloured({.draw = Draw::line_points, .columns = {{}, {}}, .width = 2, .size = 1.5, .mark = 1}, number);
  for (const auto& [at, all] : values) {
    const double median = results::censored_median(all);
    series.columns[0].push_back(std::isnan(median) ? median : at);
    series.columns[1].push_back(median);
  }
  return series;
}

/// "specialisation time" of the column specialisation_time, "feature 1" of feature_time_1, else what follows.
std::string time_name(const std::string& column, std::string_view prefix) {
  const std::string rest = column.substr(prefix.size());
  if (prefix == "feature_time") return "feature " + rest.substr(1);
  if (rest.starts_with("_")) return rest.substr(1);
  std::string words = column;
  std::ranges::replace(words, '_', ' ');
  return words;
}

Picture times_picture(const Results& results, const std::string& prefix, const std::string& label) {
  Panel panel = curves_panel(
      "points: starts, lines: their medians, triangles at the upper edge: starts that never got there",
      "ln(sqrt(D) / eta)", label);
  const std::vector<double> scales = results.table.values("log_scale");
  std::size_t number = 0;
  for (const std::string& name : results.table.names()) {
    if (!name.starts_with(prefix)) continue;
    const std::vector<double> times = results.table.values(name);
    std::map<double, std::vector<double>> values;
    for (std::size_t i = 0; i < times.size(); ++i) values[scales[i]].push_back(times[i]);
    // They have no height of their own.
    for (const auto& [at, all] : values)
      if (std::ranges::any_of(all, [](double time) { return std::isnan(time); }))
        panel.notes.push_back({.text = "",
                               .x = at,
                               .y = 1 - 0.025 * static_cast<double>(number + 1),
                               .y_of_panel = true,
                               .centred = false,
                               .mark = 8,
                               .colour = static_cast<int>(number % 8) + 1});
    panel.series.push_back(
        coloured({.draw = Draw::points, .columns = columns_of(results.table, "log_scale", name), .size = 0.9},
                 number));
    Series line = median_line(values, number++);
    panel.series.push_back(line);
    // An entry of its own: gnuplot leaves out that of a line without points.
    line.draw_as = std::exchange(line.draw, Draw::none);
    line.columns.clear();
    line.name = time_name(name, prefix);
    panel.series.push_back(std::move(line));
  }
  return curves_picture(std::move(panel));
}

}  // namespace

Picture phase_transition_picture(const Results& results) {
  return times_picture(results, "specialisation_time", "specialisation time");
}

Picture feature_times_picture(const Results& results) {
  return times_picture(results, "feature_time", "specialisation time of a feature");
}

Picture digit_times_picture(const Results& results) {
  return times_picture(results, "digit_time", "specialisation time of a digit");
}

Picture attention_picture(const Results& results) {
  const Table& table = results.table;
  const std::vector<double> sequence = table.values("sequence"), head = table.values("head"),
                            token = table.values("token");
  const double heads = std::ranges::max(head) + 1, sequences = std::ranges::max(sequence) + 1,
               tokens = std::ranges::max(token) + 1;
  // A row of cells a head, a block of rows a sequence.
  std::vector<double> rows;
  for (std::size_t i = 0; i < head.size(); ++i) rows.push_back(sequence[i] * heads + head[i]);
  Panel panel{.title = "attention of each head; token 0 carries the signal",
              .x = {.label = "token", .from = -0.5, .to = tokens - 0.5, .tic_step = 1},
              .y = {.label = "heads, a block a sequence",
                    .from = heads * sequences - 0.5,
                    .to = -0.5,
                    .has_tics = false},
              .colours = {.label = "weight over H"},
              .palette = results::Palette::white_to_black,
              .series = {{.draw = Draw::cells, .columns = {token, rows, table.values("weight")}}}};
  for (double k = 1; k < sequences; ++k)
    panel.rules.push_back({.x = -0.5, .y = k * heads - 0.5, .to_x = tokens - 0.5, .upright = false});
  return {.panels = {std::move(panel)}, .width = 700, .height = 800, .letters = 12, .subscripts = true};
}

Picture keys_picture(const Results& results) {
  const std::vector<double>& keys = results.table.column("k").numbers;
  const std::vector<double> nearest = results.table.values("class"), cosines = results.table.values("cosine");
  const std::size_t heads = results.table.rows(), pixels = keys.size() / heads;
  // As pictures side by side, where they are squares; else as curves.
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  const std::size_t width = side * side == pixels ? side : pixels, height = pixels / width;
  Series cells{.draw = Draw::cells, .columns = {{}, {}, {}}};
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t x = 0; x < width; ++x) {
        cells.columns[0].push_back(static_cast<double>(h * width + x));
        cells.columns[1].push_back(static_cast<double>(y));
        cells.columns[2].push_back(keys[h * pixels + y * width + x]);
      }
  Panel panel{.title = "keys of the heads, with the class that each is most alike and their cosine",
              .x = {.from = -0.5, .to = static_cast<double>(heads * width) - 0.5, .has_tics = false},
              .y = {.from = static_cast<double>(height) + 3, .to = -0.5, .has_tics = false},
              .colours = {.label = "key", .has_tics = false},
              .palette = results::Palette::black_to_white,
              .series = {std::move(cells)}};
  for (std::size_t h = 0; h < heads; ++h)
    panel.notes.push_back({.text = fmt::format("class {}, {:.2f}", nearest[h], cosines[h]),
                           .x = static_cast<double>(h * width) + static_cast<double>(width) / 2,
                           .y = static_cast<double>(height) + 1.5});
  return {.panels = {std::move(panel)},
          .width = static_cast<int>(std::max<std::size_t>(130 * heads, 700)),
          .height = 220,
          .letters = 12,
          .subscripts = true};
}

}  // namespace widelimit::specialization
