#include "cli/heads/heads_scan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "cli/heads/heads_config.hpp"
#include "cli/heads/heads_pictures.hpp"
#include "cli/heads/heads_times.hpp"
#include "cli/plots/gnuplot.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// A scanned field, "heads" or "prior.nu", and its numbers.
struct ScannedField {
  std::string path;
  std::vector<json> values;

  [[nodiscard]] json::json_pointer pointer() const {
    std::string text = "/" + path;
    std::replace(text.begin(), text.end(), '.', '/');
    return json::json_pointer(text);
  }
};

/// One point of the grid, with the configuration of its experiment.
struct ScanPoint {
  std::vector<double> values;
  json config;
  std::string label;  ///< "heads 2, prior.nu 10"
};

ScannedField read_list(const FieldReader& fields, const std::string& path, const json& values,
                       const json& config) {
  const auto fail = [&](const std::string& what) { fields.fail("scan", fmt::format("{}: {}", path, what)); };
  const bool numbers =
      values.is_array() && !values.empty() &&
      std::all_of(values.begin(), values.end(), [](const json& value) { return value.is_number(); });
  if (!numbers) fail("expected a list of at least one number, got " + values.dump());
  ScannedField field{path, values};
  constexpr const char* expected =
      "expected a field of the configuration, or of an object in it, such as prior.nu";
  // Both have a meaning in pointers of JSON, and none in names of fields.
  if (path.find_first_of("/~") != std::string::npos) fail(expected);
  if (std::set<json>(values.begin(), values.end()).size() < field.values.size())
    fail("expected different numbers, got " + values.dump());
  const json::json_pointer pointer = field.pointer();
  if (config.contains(pointer)) fail("is scanned and given too; leave one of them out");
  // A scan sets fields of objects that are there: it makes none of its own.
  const json& parent =
      config.contains(pointer.parent_pointer()) ? config.at(pointer.parent_pointer()) : json();
  if (!parent.is_object()) fail(expected);
  return field;
}

std::vector<ScannedField> scanned_fields(const json& config) {
  const FieldReader fields(config, "config");
  const json& scan = config.at("scan");
  if (!scan.is_object() || scan.empty())
    fields.fail("scan",
                "expected an object of lists of numbers, such as {\"heads\": [1, 2, 4]}, got " + scan.dump());
  std::vector<ScannedField> lists;
  for (const auto& [path, values] : scan.items()) lists.push_back(read_list(fields, path, values, config));
  return lists;
}

std::vector<ScanPoint> scan_points(const json& config, const std::vector<ScannedField>& lists) {
  constexpr double most_points = 1e6;
  double count = 1;
  for (const ScannedField& list : lists) count *= static_cast<double>(list.values.size());
  if (count > most_points)
    FieldReader(config, "config")
        .fail("scan", fmt::format("expected at most {} points, got {}", most_points, count));
  json rest = config;
  rest.erase("scan");
  std::vector<ScanPoint> points{{{}, rest, ""}};
  for (const ScannedField& list : lists) {
    std::vector<ScanPoint> longer;
    for (const ScanPoint& point : points)
      for (const json& value : list.values) {
        ScanPoint next = point;
        next.values.push_back(value.get<double>());
        next.config[list.pointer()] = value;
        next.label += fmt::format("{}{} {}", point.label.empty() ? "" : ", ", list.path, value.dump());
        longer.push_back(std::move(next));
      }
    points = std::move(longer);
  }
  return points;
}

/// A point's outcome as the file of finished points has it.
json to_json(const ResultTable& table) {
  return {
      {"summary", table.summary}, {"columns", table.columns}, {"rows", table.rows}, {"notes", table.notes}};
}

ResultTable table_of(const json& kept) {
  ResultTable table;
  table.summary = kept.at("summary");
  table.columns = kept.at("columns").get<std::vector<std::string>>();
  for (const json& row : kept.at("rows")) {
    table.rows.emplace_back();
    // JSON has null for what is no number.
    for (const json& cell : row)
      table.rows.back().push_back(cell.is_null() ? missing_value : cell.get<double>());
  }
  table.notes = kept.at("notes").get<std::map<std::string, std::string>>();
  return table;
}

/// The finished points of a scan: a line with the origin, then a line a point, which is appended once it is done.
class KeptPoints {
 public:
  KeptPoints(std::filesystem::path file, const Origin& origin)
      : file_{std::move(file)}, origin_(origin_json(origin)) {
    // Its name is not the user's own choice, so that it may be a stranger's link.
    if (!file_.empty()) files::require_no_link(file_);
    if (!file_.empty() && std::filesystem::exists(file_)) read_points();
  }

  /// Nothing if the point is not there yet.
  [[nodiscard]] std::optional<ResultTable> point(std::size_t k) const {
    return k < points_.size() ? std::optional(table_of(points_[k])) : std::nullopt;
  }
  void add(const ResultTable& table) {
    if (file_.empty()) return;
    files::require_no_link(file_);
    if (!std::filesystem::exists(file_)) files::replace_file(file_, json{{"origin", origin_}}.dump() + "\n");
    std::ofstream out(file_, std::ios::app);
    out << to_json(table).dump() << "\n" << std::flush;
    if (!out) throw DataError(fmt::format("{}: cannot be written", file_.string()));
  }
  void remove() const {
    if (!file_.empty()) std::filesystem::remove(file_);
  }
  /// body(), which reads what the file has of a point: DataError where something else stands there.
  template <typename Body>
  decltype(auto) reading(const Body& body) const {
    try {
      return body();
    } catch (const json::exception&) {
      fail_damaged();
    }
  }

 private:
  void read_points() {
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
    const std::string text = files::read_file(file_, most_bytes, "finished points of a scan");
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      points_.push_back(parse_json(std::string_view(text).substr(begin, end - begin), file_.string()));
    if (points_.empty() || !points_.front().is_object() || points_.front().value("origin", json()) != origin_)
      throw DataError(fmt::format(
          "{}: holds points of another configuration or version; remove it, or give another --out",
          file_.string()));
    points_.erase(points_.begin());
    // What a stop left of the line that was being written.
    if (begin < text.size()) std::filesystem::resize_file(file_, begin);
  }

  [[noreturn]] void fail_damaged() const {
    throw DataError(
        fmt::format("{}: is damaged; remove it, and all points are computed again", file_.string()));
  }

  std::filesystem::path file_;
  json origin_;
  std::vector<json> points_;  ///< As they were read.
};

/// Rows of a point: those of its table, or its summary where tables of points are trajectories.
void append_point(std::string_view experiment, const ScanPoint& point, const ResultTable& result,
                  ResultTable& all) {
  const std::size_t scanned = point.values.size();
  const auto append = [&](const std::vector<double>& row) {
    all.rows.push_back(point.values);
    all.rows.back().insert(all.rows.back().end(), row.begin(), row.end());
  };
  std::vector<std::string> columns = result.columns;
  if (experiment == "flow") {
    const json& summary = result.summary;
    const auto number = [](const json& value) {
      return value.is_number() ? value.get<double>() : missing_value;
    };
    columns = {"loss",      "loss_standard_error", "least_loss", "greatest_loss",
               "converged", "specialisation_time", "tau",        "split_rate"};
    append({number(summary.at("loss")), number(summary.at("loss_standard_error")),
            number(summary.at("losses").at("least")), number(summary.at("losses").at("greatest")),
            summary.at("converged").get<bool>() ? 1.0 : 0.0, number(summary.at("specialisation_time")),
            number(summary.at("tau")), number(summary.at("split_rate"))});
    if (summary.at("split_rate").is_null())
      all.notes["split_rate"] = "none where the flow does not end at a saddle";
  } else {
    for (const std::vector<double>& row : result.rows) append(row);
  }
  if (all.columns.size() == scanned) all.columns.insert(all.columns.end(), columns.begin(), columns.end());
  all.notes.insert(result.notes.begin(), result.notes.end());
}

}  // namespace

bool has_scans(std::string_view experiment) {
  const ConfigFields& fields = experiment_fields(experiment);
  return std::any_of(fields.begin(), fields.end(),
                     [](const ConfigField& field) { return std::string_view(field.name) == "scan"; });
}

bool is_scan(std::string_view experiment, const json& config) {
  return config.is_object() && config.contains("scan") && has_scans(experiment);
}

ResultTable run_scan(std::string_view experiment, const json& config, const RunControl& run,
                     const std::filesystem::path& kept) {
  const std::vector<ScannedField> lists = scanned_fields(config);
  const std::vector<ScanPoint> points = scan_points(config, lists);
  const auto at_point = [](const ScanPoint& point, const auto& body) {
    return naming_errors(point.label, body);
  };
  // What is wrong with a value of any point shows before the work.
  for (const ScanPoint& point : points)
    at_point(point, [&] { static_cast<void>(ConfigReader(point.config, experiment_fields(experiment))); });
  ResultTable all;
  all.origin = {fmt::format("heads {}", experiment), config};
  for (const ScannedField& list : lists) all.columns.push_back(list.path);
  KeptPoints finished(kept, all.origin);
  RunControl inner = run;
  inner.progress = {};
  json summaries = json::array();
  for (std::size_t k = 0; k < points.size(); ++k) {
    std::optional<ResultTable> result = finished.reading([&] { return finished.point(k); });
    if (!result) {
      result = at_point(points[k], [&] { return run_experiment(experiment, points[k].config, inner); });
      finished.add(*result);
    }
    json summary = json::object();
    for (std::size_t list = 0; list < lists.size(); ++list)
      summary["scan"][lists[list].path] = points[k].config.at(lists[list].pointer());
    finished.reading([&] {
      append_point(experiment, points[k], *result, all);
      summary.update(result->summary);
    });
    summaries.push_back(std::move(summary));
    if (run.progress)
      run.progress(static_cast<std::ptrdiff_t>(k + 1), static_cast<std::ptrdiff_t>(points.size()));
  }
  all.summary = {{"points", std::move(summaries)}};
  finished.remove();
  return all;
}

namespace {

/// What a scan's picture shows: a column over another, or over a scanned field.
struct ScanPicture {
  const char* experiment;
  const char* x;  ///< Empty: the first scanned field of several values.
  const char* x_label;
  const char* y;
  const char* y_label;
};

constexpr ScanPicture scan_pictures[] = {
    {"flow", "", "", "loss", "loss on fresh samples, of the start with the median"},
    {"bayes", "", "", "bayes_risk", "Bayes risk"},
    {"prune", "removed", "heads removed", "loss", "loss on fresh samples, median over the starts"},
    {"phase-transition", "log_scale", "ln(sqrt(D) / eta)", "specialisation_time",
     "specialisation time, median over the starts"}};

std::size_t scanned_columns(const ResultTable& table) { return table.origin.configuration.at("scan").size(); }

/// The first scanned column that varies, or the first.
std::size_t varying_column(const ResultTable& table) {
  for (std::size_t column = 0; column < scanned_columns(table); ++column)
    for (const std::vector<double>& row : table.rows)
      if (row[column] != table.rows.front()[column]) return column;
  return 0;
}

/// "x median" a line, without what was not reached by half of the values.
std::string median_points(const std::map<double, std::vector<double>>& values) {
  std::string points;
  for (const auto& [at, all] : values) {
    const double median = censored_median(all);
    if (!std::isnan(median)) fmt::format_to(std::back_inserter(points), "{} {}\n", at, median);
  }
  return points;
}

}  // namespace

std::string scan_script(std::string_view experiment, const ResultTable& table) {
  const auto picture = std::find_if(std::begin(scan_pictures), std::end(scan_pictures),
                                    [&](const ScanPicture& one) { return experiment == one.experiment; });
  const std::size_t scanned = scanned_columns(table);
  const auto column_of = [&](std::string_view prefix) {
    const auto found =
        std::find_if(table.columns.begin() + static_cast<std::ptrdiff_t>(scanned), table.columns.end(),
                     [&](const std::string& name) { return name.starts_with(prefix); });
    return static_cast<std::size_t>(found - table.columns.begin());
  };
  const bool over_scanned = std::string_view(picture->x).empty();
  const std::size_t x = over_scanned ? varying_column(table) : column_of(picture->x),
                    y = column_of(picture->y);
  // By the point without its x: values of y at each x.
  std::map<std::string, std::map<double, std::vector<double>>> curves;
  for (const std::vector<double>& row : table.rows) {
    std::string name;
    for (std::size_t k = 0; k < scanned; ++k)
      if (k != x) name += fmt::format("{}{} {:g}", name.empty() ? "" : ", ", table.columns[k], row[k]);
    curves[name][row[x]].push_back(row[y]);
  }
  std::string data, lines;
  std::size_t curve = 0;
  for (const auto& [name, values] : curves) {
    const std::string points = median_points(values);
    ++curve;
    // gnuplot refuses a curve without points.
    if (points.empty()) continue;
    fmt::format_to(std::back_inserter(data), "$curve{} << EOD\n{}EOD\n", curve, points);
    fmt::format_to(std::back_inserter(lines),
                   "$curve{} using 1:2 with linespoints pt 7 lw 2 lc {} dt {} {}, ", curve,
                   (curve - 1) % 8 + 1, (curve - 1) / 8 % 5 + 1,
                   name.empty() ? "notitle" : "title " + gnuplot_quoted(name) + " noenhanced");
  }
  const std::string x_label = over_scanned ? table.columns[x] : picture->x_label;
  return fmt::format("{}set title {}\nset xlabel {} noenhanced\nset ylabel {}\n{}{}\n", heads_canvas,
                     gnuplot_quoted(fmt::format("heads {}, a scan", experiment)), gnuplot_quoted(x_label),
                     gnuplot_quoted(picture->y_label), data,
                     lines.empty() ? empty_axes("no value at any point") : "plot " + lines);
}

}  // namespace widelimit::cli
