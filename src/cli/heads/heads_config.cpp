#include "cli/heads/heads_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// (nu1, nu2) if the prior is flip2, whose unspecialised saddle is known.
std::optional<std::pair<double, double>> flip_strengths(const Prior& prior) {
  const Matrix<double>& points = prior.points();
  if (prior.kind() != Prior::Kind::discrete || points.rows() != 2 || points.cols() != 2) return std::nullopt;
  if (points(0, 0) != points(1, 0) || points(0, 1) != -points(1, 1) || prior.probabilities()[0] != 0.5)
    return std::nullopt;
  return std::pair{points(0, 0) * points(0, 0), points(0, 1) * points(0, 1)};
}

}  // namespace

void name_start_column(ConfigReader& in, ResultTable& table) {
  if (in.integer("starts") > 1) table.columns.insert(table.columns.begin(), "start");
}

void append_row(ResultTable& table, std::size_t start, std::vector<double> row) {
  if (table.columns.front() == "start") row.insert(row.begin(), static_cast<double>(start));
  table.rows.push_back(std::move(row));
}

json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"least", spread.least}, {"greatest", spread.greatest}};
}

void name_entries(std::vector<std::string>& columns, const std::string& prefix, Index rows, Index cols) {
  const char* separator = std::max(rows, cols) > 10 ? "_" : "";
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) columns.push_back(fmt::format("{}{}{}{}", prefix, i, separator, j));
}

json to_json(const Vector<double>& vector) { return std::vector<double>(vector.begin(), vector.end()); }

std::vector<std::string> trajectory_columns(Index heads, Index features, Index scales) {
  std::vector<std::string> columns = {"tau", "loss"};
  name_entries(columns, "m", heads, features);
  name_entries(columns, "S", heads, heads);
  for (Index h = 0; h < heads; ++h) columns.push_back(fmt::format("b{}", h));
  for (Index k = 0; k < scales; ++k) columns.push_back(fmt::format("v{}", k));
  return columns;
}

std::vector<double> trajectory_row(double tau, double loss, const Matrix<double>& m, const Matrix<double>& S,
                                   const Vector<double>& b, const Vector<double>& v) {
  std::vector<double> row = {tau, loss};
  append(row, m);
  append(row, S);
  append(row, b);
  append(row, v);
  return row;
}

json time_or_null(const std::optional<double>& time) { return time ? json(*time) : json(nullptr); }

std::optional<SplitRate> saddle_rate(ConfigReader& in, HeadActivation activation, const Prior& prior,
                                     const RunControl& run) {
  const auto strengths = flip_strengths(prior);
  const bool known = activation == HeadActivation::softmax || activation == HeadActivation::bayes;
  if (!strengths || !known || in.integer("heads") < 2 || in.integer("tokens") < 2) return std::nullopt;
  return split_rate_by_sampling(activation, in.integer("tokens"), in.integer("heads"), strengths->first,
                                strengths->second, 1'000'000, read_seed(in), run);
}

}  // namespace widelimit::cli
