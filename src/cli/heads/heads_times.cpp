#include "cli/heads/heads_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// Slope of y against x by least squares; NaN for fewer than two different x.
double least_squares_slope(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const double spread = n * xx - x * x;
  return spread > 1e-12 * n * xx ? (n * xy - x * y) / spread : missing_value;
}

void append_time(std::vector<double>& row, std::optional<double> time, double scale) {
  row.push_back(time.value_or(missing_value));
  row.push_back(row.back() / scale);
}

}  // namespace

void TimesOverScales::add(double scale, std::optional<double> time) {
  if (spreads_.empty() || scale != last_scale_) spreads_.emplace_back();
  last_scale_ = scale;
  spreads_.back().push_back(time);
  points_.emplace_back(scale, time.value_or(missing_value));
}

std::vector<std::pair<double, double>> TimesOverScales::points_of_complete_scales() const {
  std::vector<std::pair<double, double>> complete;
  std::size_t first = 0;
  for (const auto& times : spreads_) {
    if (std::all_of(times.begin(), times.end(), [](const auto& time) { return time.has_value(); }))
      for (std::size_t k = 0; k < times.size(); ++k) complete.push_back(points_[first + k]);
    first += times.size();
  }
  return complete;
}

double censored_median(std::vector<double> times) {
  std::sort(times.begin(), times.end(),
            [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  // One of the middle two that is missing makes the sum missing too.
  const std::size_t count = times.size();
  return count == 0 ? missing_value : (times[(count - 1) / 2] + times[count / 2]) / 2;
}

namespace {

/// {median, least, greatest} of times of which some were not reached: those come last, and are null.
json spread_of(const std::vector<std::optional<double>>& times) {
  std::vector<double> values;
  for (const auto& time : times) values.push_back(time.value_or(missing_value));
  const auto [least, greatest] = std::minmax_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a && (!b || *a < *b); });
  const double median = censored_median(std::move(values));
  return {{"median", std::isnan(median) ? json(nullptr) : json(median)},
          {"least", time_or_null(*least)},
          {"greatest", time_or_null(*greatest)}};
}

std::ptrdiff_t count_reached(const std::vector<std::optional<double>>& times) {
  return std::count_if(times.begin(), times.end(), [](const auto& time) { return time.has_value(); });
}

/// Mean and variance (with n - 1) of times that were all reached, of two runs or more.
std::optional<std::pair<double, double>> moments_of(const std::vector<std::optional<double>>& times) {
  if (times.size() < 2 || count_reached(times) < std::ssize(times)) return std::nullopt;
  double mean = 0, squares = 0;
  for (const auto& time : times) mean += *time / static_cast<double>(times.size());
  for (const auto& time : times) squares += (*time - mean) * (*time - mean);
  return std::pair{mean, squares / static_cast<double>(times.size() - 1)};
}

}  // namespace

json starts_spread(const std::vector<json>& results, const char* field) {
  std::vector<std::optional<double>> times;
  for (const json& result : results)
    times.push_back(result[field].is_number() ? std::optional(result[field].get<double>()) : std::nullopt);
  const auto reached = count_reached(times);
  return {{field, reached > 0 ? spread_of(times) : json(nullptr)}, {"values", reached}};
}

json TimesOverScales::summary() const {
  const double slope = least_squares_slope(points_of_complete_scales());
  json result{{"slope", std::isnan(slope) ? json(nullptr) : json(slope)}, {"times", json::array()}};
  for (const auto& times : spreads_) {
    json spread = spread_of(times);
    spread["reached"] = count_reached(times);
    const auto moments = moments_of(times);
    spread["mean"] = moments ? json(moments->first) : json();
    spread["variance"] = moments ? json(moments->second) : json();
    for (const auto& time : times) spread["values"].push_back(time_or_null(time));
    result["times"].push_back(std::move(spread));
  }
  return result;
}

TimesTable::TimesTable(const std::string& quantity, const std::vector<std::string>& names,
                       bool several_dimensions)
    : quantities_(names.size()), several_dimensions_(several_dimensions) {
  if (several_dimensions) table.columns = {"dimension"};
  table.columns.insert(table.columns.end(), {"eta", "start", "log_scale"});
  for (const std::string& name : names) {
    const std::string suffix = name.empty() ? "" : "_" + name;
    table.columns.push_back(quantity + suffix);
    table.columns.push_back("ratio" + suffix);
  }
}

std::vector<std::pair<double, double>> TimesTable::scales_of(ConfigReader& in, Index dimension) {
  const double root = std::sqrt(static_cast<double>(dimension));
  std::vector<std::pair<double, double>> scales;
  for (const double eta : in.numbers("etas")) scales.emplace_back(eta, std::log(root / eta));
  return scales;
}

void TimesTable::append(Index dimension, double eta, Index start, double scale,
                        const std::vector<FirstTimes>& runs) {
  std::vector<double> row;
  if (several_dimensions_) row.push_back(static_cast<double>(dimension));
  row.insert(row.end(), {eta, static_cast<double>(start), scale});
  std::size_t quantity = 0;
  for (const FirstTimes& run : runs) {
    ends_.push_back(run.end);
    for (const std::optional<double>& time : run.times) {
      append_time(row, time, scale);
      quantities_[quantity++].add(scale, time);
    }
  }
  table.rows.push_back(std::move(row));
}

void TimesTable::note_times() {
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const auto missing = std::count_if(table.rows.begin(), table.rows.end(),
                                       [k](const auto& row) { return std::isnan(row[k]); });
    if (missing > 0)
      table.notes[table.columns[k]] =
          fmt::format("not reached in {} of {} runs; `ends` says how they ended", missing, table.rows.size());
  }
}

json TimesTable::ends() const {
  const auto count = [&](RunEnd end) { return std::count(ends_.begin(), ends_.end(), end); };
  return {{"specialised", count(RunEnd::specialised)},
          {"rest", count(RunEnd::rest)},
          {"tau", count(RunEnd::tau)}};
}

}  // namespace widelimit::cli
