#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/results/experiment.hpp"

namespace widelimit::results {

using nlohmann::json;

namespace {

/// A scanned field, "heads" or "prior.nu", and its numbers.
struct ScannedField {
  std::string path;
  std::vector<json> values;

  [[nodiscard]] json::json_pointer pointer() const {
    std::string text = "/" + path;
    std::ranges::replace(text, '.', '/');
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
  const bool numbers = values.is_array() && !values.empty() &&
                       std::ranges::all_of(values, [](const json& value) { return value.is_number(); });
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
json kept_json(const Results& results) {
  json kept = json_of(results.table);
  kept.update({{"summary", results.summary}, {"notes", results.notes}});
  return kept;
}

Results results_of(const json& kept) {
  std::vector<std::vector<double>> rows;
  for (const json& row : kept.at("rows")) {
    rows.emplace_back();
    // JSON has null for what is no number.
    for (const json& cell : row) rows.back().push_back(cell.is_null() ? std::nan("") : cell.get<double>());
  }
  return {.summary = kept.at("summary"),
          .table = Table(kept.at("columns").get<std::vector<std::string>>(), rows),
          .notes = kept.at("notes").get<Table::Notes>()};
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
  [[nodiscard]] std::optional<Results> point(std::size_t k) const {
    return k < points_.size() ? std::optional(results_of(points_[k])) : std::nullopt;
  }
  void add(const Results& results) {
    if (file_.empty()) return;
    files::require_no_link(file_);
    if (!std::filesystem::exists(file_)) files::replace_file(file_, json{{"origin", origin_}}.dump() + "\n");
    std::ofstream out(file_, std::ios::app);
    out << kept_json(results).dump() << "\n" << std::flush;
    if (!out) throw DataError(fmt::format("{}: cannot be written", file_.string()));
  }
  void remove() const {
    if (!file_.empty()) std::filesystem::remove(file_);
  }
  /// body(), which reads what the file has of a point: DataError where something else stands there.
  template <typename Body>
  decltype(auto) reading(const Body& body) const {
    const auto damaged = [this]() -> DataError {
      return DataError(
          fmt::format("{}: is damaged; remove it, and all points are computed again", file_.string()));
    };
    try {
      return body();
    } catch (const json::exception&) {
      throw damaged();
    } catch (const std::out_of_range&) {
      throw damaged();
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

  std::filesystem::path file_;
  json origin_;
  std::vector<json> points_;  ///< As they were read.
};

/// The rows of all points, each after its values of the scanned fields.
class PointRows {
 public:
  explicit PointRows(const std::vector<ScannedField>& lists) {
    for (const ScannedField& list : lists) names_.push_back(list.path);
  }
  void add(const std::vector<double>& values, const Table& table) {
    if (rows_.empty()) {
      const std::vector<std::string> columns = table.names();
      names_.insert(names_.end(), columns.begin(), columns.end());
    }
    for (const std::vector<double>& row : table.number_rows()) {
      rows_.push_back(values);
      rows_.back().insert(rows_.back().end(), row.begin(), row.end());
    }
  }
  [[nodiscard]] Table table() const { return {names_, rows_}; }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> rows_;
};

}  // namespace

bool has_scans(const Experiment& experiment) { return find_field(*experiment.fields, "scan") != nullptr; }

bool is_scan(const Experiment& experiment, const json& config) {
  return config.is_object() && config.contains("scan") && has_scans(experiment);
}

Results run_scan(const Theory& theory, std::string_view name, const json& config, const Control& control,
                 const std::filesystem::path& kept) {
  const Experiment& experiment = theory.experiment(name);
  const std::vector<ScannedField> lists = scanned_fields(config);
  const std::vector<ScanPoint> points = scan_points(config, lists);
  // What is wrong with a value of any point shows before the work.
  for (const ScanPoint& point : points)
    naming_errors(point.label, [&] { static_cast<void>(ConfigReader(point.config, *experiment.fields)); });
  Results all{.origin = {fmt::format("{} {}", theory.name, name), config}};
  PointRows rows(lists);
  KeptPoints finished(kept, all.origin);
  Control inner = control;
  inner.progress = {};
  for (std::size_t k = 0; k < points.size(); ++k) {
    std::optional<Results> result = finished.reading([&] { return finished.point(k); });
    if (!result) {
      result = naming_errors(points[k].label, [&] { return theory.run(name, points[k].config, inner); });
      finished.add(*result);
    }
    json summary = json::object();
    for (const ScannedField& list : lists) summary["scan"][list.path] = points[k].config.at(list.pointer());
    finished.reading([&] {
      summary.update(result->summary);
      if (experiment.tabulate_point != nullptr) experiment.tabulate_point(*result);
      rows.add(points[k].values, result->table);
      all.notes.insert(result->notes.begin(), result->notes.end());
    });
    all.summary["points"].push_back(std::move(summary));
    if (control.progress)
      control.progress(static_cast<std::ptrdiff_t>(k + 1), static_cast<std::ptrdiff_t>(points.size()));
  }
  all.table = rows.table();
  finished.remove();
  return all;
}

namespace {

/// The first scanned column that varies, or the first.
std::size_t varying_column(const std::vector<std::vector<double>>& rows, std::size_t scanned) {
  for (std::size_t column = 0; column < scanned; ++column)
    for (const std::vector<double>& row : rows)
      if (row[column] != rows.front()[column]) return column;
  return 0;
}

/// x and medians as a line, without what was not reached by half of the values.
Series median_line(const std::string& name, const std::map<double, std::vector<double>>& values, int curve) {
  Series series{.draw = Draw::line_points,
                .columns = {{}, {}},
                .name = name,
                .colour = curve % 8 + 1,
                .width = 2,
                .dash = curve / 8 % 5 + 1};
  for (const auto& [at, all] : values) {
    const double median = censored_median(all);
    if (std::isnan(median)) continue;
    series.columns[0].push_back(at);
    series.columns[1].push_back(median);
  }
  return series;
}

}  // namespace

Picture scan_picture(const Theory& theory, std::string_view name, const Results& results) {
  const ScanPicture& shown = theory.experiment(name).scan_picture;
  const std::vector<std::string> names = results.table.names();
  const std::vector<std::vector<double>> rows = results.table.number_rows();
  const std::size_t scanned = results.origin.configuration.at("scan").size();
  const auto column_of = [&](const std::string& prefix) {
    const auto found = std::find_if(names.begin() + static_cast<std::ptrdiff_t>(scanned), names.end(),
                                    [&](const std::string& one) { return one.starts_with(prefix); });
    return static_cast<std::size_t>(found - names.begin());
  };
  const std::size_t x = shown.x.empty() ? varying_column(rows, scanned) : column_of(shown.x),
                    y = column_of(shown.y);
  // By the point without its x: values of y at each x.
  std::map<std::string, std::map<double, std::vector<double>>> curves;
  for (const std::vector<double>& row : rows) {
    std::string point;
    for (std::size_t k = 0; k < scanned; ++k)
      if (k != x) point += fmt::format("{}{} {:g}", point.empty() ? "" : ", ", names[k], row[k]);
    curves[point][row[x]].push_back(row[y]);
  }
  Panel panel{.title = fmt::format("{} {}, a scan", theory.name, name),
              .x = {.label = shown.x.empty() ? names[x] : shown.x_label},
              .y = {.label = shown.y_label},
              .legend = Legend::outside,
              .grid = true,
              .margin = 0.02};
  int curve = 0;
  for (const auto& [point, values] : curves) {
    Series series = median_line(point, values, curve++);
    // gnuplot refuses a curve without points.
    if (!series.columns[0].empty()) panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) panel = empty_panel(std::move(panel), "no value at any point");
  return {.panels = {std::move(panel)}, .width = 1000, .height = 650, .letters = 12};
}

}  // namespace widelimit::results
