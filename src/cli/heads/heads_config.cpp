#include "cli/heads/heads_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/options/counts.hpp"
#include "widelimit/layers/matrix_field.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/read_prior.hpp"

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

Matrix<double> matrix_of(FieldReader& in, const char* field) {
  return layers::read_matrix_rows(in, field, in.value(field));
}

Vector<double> vector_of(FieldReader& in, const char* field) {
  if (in.value(field).is_number()) return Vector<double>::Constant(1, in.number(field));
  const std::vector<double> numbers = in.numbers(field);
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

HeadActivation activation_of(ConfigReader& in) { return in.choice("activation", head_activations); }

Prior prior_of(ConfigReader& in) {
  try {
    return read_prior(in.value("prior"), in.path() + ".prior");
  } catch (const ArgumentError& error) {
    in.fail("prior", error.what());
  }
}

Index samples_of(ConfigReader& in, const char* field, Index features) {
  const Index samples = in.integer(field);
  const double numbers = static_cast<double>(in.integer("tokens")) *
                         static_cast<double>(features + in.integer("heads")) * static_cast<double>(samples);
  numerics::require_memory(fmt::format("{}.{}", in.path(), field),
                           fmt::format("a set of {} samples", samples), numbers * sizeof(float),
                           "take fewer samples");
  return samples;
}

void require_dimension(ConfigReader& in, Index dimension, Index least) {
  if (dimension < least)
    in.fail(in.has("dimensions") ? "dimensions" : "dimension",
            fmt::format("expected an integer >= {}, got {}", least, dimension));
}

std::uint64_t seed_of(ConfigReader& in) { return static_cast<std::uint64_t>(in.integer("seed")); }

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

namespace {

/// A flow is asked for at its last time. An SGD ends within half a step of it, but takes one at least.
void check_whole_steps(std::string_view field, double tau, double step, Index steps) {
  constexpr double rounding = 1e-9;
  const double end = static_cast<double>(steps) * step;
  const bool is_flow = field == "step";
  if ((is_flow && std::abs(end - tau) > rounding * tau) || (tau > 0 && steps == 0))
    throw ArgumentError(fmt::format("config.tau: expected {} of {} {:g}, got {:g}, which is {:g} of them",
                                    is_flow ? "whole steps" : "at least half a step", field, step, tau,
                                    tau / step));
}

}  // namespace

Index steps_in(ConfigReader& in, std::string_view field, double step) {
  const double tau = in.number("tau");
  const Index steps =
      checked_count(std::round(tau / step), most_steps,
                    fmt::format("config.tau: steps of {} {:g} up to tau {:g}", field, step, tau));
  if (in.has("tau")) check_whole_steps(field, tau, step, steps);
  return steps;
}

std::vector<Index> records_of(ConfigReader& in, Index steps) {
  const Index records = in.integer("records");
  return record_every(std::max<Index>(1, steps / records), steps);
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
  if (!strengths || !known || in.integer("heads") < 2) return std::nullopt;
  return split_rate_by_sampling(activation, in.integer("tokens"), in.integer("heads"), strengths->first,
                                strengths->second, 1'000'000, seed_of(in), run);
}

}  // namespace widelimit::cli
