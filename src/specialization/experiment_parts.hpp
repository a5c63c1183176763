#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json_fields.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/experiment.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/samples.hpp"

/// What the experiments share: reading of their common fields and naming of columns.
namespace widelimit::specialization {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
// Far from the small seeds a user counts up: starts must not repeat the numbers of batches and samples.
inline constexpr std::uint64_t kStartSeed = 1'000'000'007;

template <typename Value>
Value choice(const JsonFields& in, const std::string& field, const std::map<std::string, Value>& known,
             const std::string& otherwise) {
  const std::string name = in.has(field) ? in.text(field) : otherwise;
  const auto place = known.find(name);
  if (place != known.end()) return place->second;
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const auto& item : known) names.push_back(item.first);
  throw ArgumentError(
      fmt::format("config.{}: expected {}, got \"{}\"", field, fmt::join(names, " or "), name));
}

/// ArgumentError naming the first field that the experiment does not have.
void allow_fields_of(std::string_view experiment, const JsonFields& in);

Prior prior_of(const JsonFields& in);
std::uint64_t seed_of(const JsonFields& in);
SampleSymmetry symmetry_of(const JsonFields& in, const std::string& otherwise);

/// Number of steps of a size, which the given field has set, in the time "tau", or where there is none in
/// `otherwise`.
Index steps_in(const JsonFields& in, const std::string& field, double step,
               std::optional<double> otherwise = std::nullopt);
/// Steps to record, about "records" of them.
std::vector<Index> records_of(const JsonFields& in, Index steps, Index otherwise);

/// Appends the names of a matrix' entries: m00, m01, ...
void name_entries(std::vector<std::string>& columns, const std::string& prefix, Index rows, Index cols);
/// tau, loss, entries of m and S, b, v: a trajectory's columns, and a row of them.
std::vector<std::string> trajectory_columns(Index heads, Index features, Index scales);
std::vector<double> trajectory_row(double tau, double loss, const Matrix<double>& m, const Matrix<double>& S,
                                   const Vector<double>& b, const Vector<double>& v);

template <typename Derived>
void append(std::vector<double>& row, const Eigen::MatrixBase<Derived>& matrix) {
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index j = 0; j < matrix.cols(); ++j) row.push_back(matrix(i, j));
}

nlohmann::json to_json(const Matrix<double>& matrix);
nlohmann::json to_json(const Vector<double>& vector);
nlohmann::json time_or_null(const std::optional<double>& time);

/// Split rate at the unspecialised saddle, where the note gives one: softmax and bayes on flip2, H >= 2.
std::optional<SplitRate> saddle_rate(const JsonFields& in, HeadActivation activation, const Prior& prior,
                                     const RunControl& run);

/// Experiments on the flow, in flow_experiments.cpp.
ExperimentTable flow_experiment(const JsonFields& in, const RunControl& run);
ExperimentTable prune_experiment(const JsonFields& in, const RunControl& run);

/// Experiments on SGD, in sgd_experiments.cpp.
ExperimentTable sgd_experiment(const JsonFields& in, const RunControl& run);
ExperimentTable compare_experiment(const JsonFields& in, const RunControl& run);
ExperimentTable phase_transition_experiment(const JsonFields& in, const RunControl& run);

}  // namespace widelimit::specialization
