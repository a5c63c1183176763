#include "specialization/experiments/shared.hpp"

#include <algorithm>
#include <cmath>

namespace widelimit::specialization {

using nlohmann::json;

Results seeded(ConfigReader& fields) {
  Results results;
  results.origin.seed = read_seed(fields);
  return results;
}

Column start_column(Index starts) { return {.name = "start", .in_files = starts > 1}; }

Table flow_table(Index starts, HeadActivation activation, Index heads, Index features) {
  using namespace results;
  return Table({start_column(starts),
                {.name = "tau"},
                {.name = "loss"},
                not_in_files({.name = "gradient"}),
                matrix_column("m", heads, features),
                matrix_column("S", heads, heads),
                not_in_files(matrix_column("r", heads, heads)),
                vector_column("b", heads),
                vector_column("v", scale_count(activation, heads))});
}

void add_flow(Table& table, Index start, const std::vector<FlowPoint>& points, const Matrix<double>& frame) {
  for (const FlowPoint& point : points) {
    const HeadParameters& at = point.parameters;
    const Matrix<double> m = frame.size() == 0 ? at.m : Matrix<double>(at.m * frame);
    table.add(static_cast<double>(start), point.tau, point.loss, point.gradient, m, point.S, at.r, at.b,
              at.v);
  }
}

json number_or_null(const std::optional<double>& number) { return number ? json(*number) : json(nullptr); }

json times_spread(const std::vector<std::optional<double>>& times) {
  std::vector<double> values;
  for (const auto& time : times) values.push_back(time.value_or(std::nan("")));
  const auto [least, greatest] = std::minmax_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a && (!b || *a < *b); });
  const double median = results::censored_median(std::move(values));
  return {{"median", std::isnan(median) ? json(nullptr) : json(median)},
          {"least", number_or_null(*least)},
          {"greatest", number_or_null(*greatest)}};
}

std::ptrdiff_t count_reached(const std::vector<std::optional<double>>& times) {
  return std::ranges::count_if(times, [](const auto& time) { return time.has_value(); });
}

json starts_spread(const std::vector<json>& results, const char* field) {
  std::vector<std::optional<double>> times;
  for (const json& result : results)
    times.push_back(result[field].is_number() ? std::optional(result[field].get<double>()) : std::nullopt);
  const auto reached = count_reached(times);
  return {{field, reached > 0 ? times_spread(times) : json(nullptr)}, {"values", reached}};
}

json summary_of_starts(const std::vector<json>& starts, const char* spread) {
  json summary = starts.front();
  summary["starts"] = starts;
  summary["spread"] = starts_spread(starts, spread);
  return summary;
}

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

std::optional<SplitRate> split_rate_at_saddle(ConfigReader& fields, HeadActivation activation,
                                              const Prior& prior, const RunControl& run) {
  const auto strengths = flip_strengths(prior);
  const bool known = activation == HeadActivation::softmax || activation == HeadActivation::bayes;
  if (!strengths || !known || fields.integer("heads") < 2 || fields.integer("tokens") < 2)
    return std::nullopt;
  return split_rate_by_sampling(activation, fields.integer("tokens"), fields.integer("heads"),
                                strengths->first, strengths->second, 1'000'000, read_seed(fields), run);
}

}  // namespace widelimit::specialization
