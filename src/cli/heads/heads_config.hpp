#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/heads/heads_experiment.hpp"
#include "widelimit/specialization/configuration.hpp"
#include "widelimit/specialization/hessian.hpp"

/// What the experiments share: runs from several starts, and naming of columns.
namespace widelimit::cli {

using namespace specialization;

inline constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();

/// Puts a first column "start" before the others where there are several starts; rows are appended with the number of
/// theirs.
void name_start_column(ConfigReader& in, ResultTable& table);
void append_row(ResultTable& table, std::size_t start, std::vector<double> row);
nlohmann::json spread_json(const Spread& spread);

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

nlohmann::json to_json(const Vector<double>& vector);
nlohmann::json time_or_null(const std::optional<double>& time);

/// {field: median, least and greatest, "values": how many have one};
/// null, a time that was not reached, is later than all.
[[nodiscard]] nlohmann::json starts_spread(const std::vector<nlohmann::json>& results, const char* field);

/// `table` with the rows of as many starts as "starts" asks for, which append_start(number, seed, table) appends; the
/// summary holds the fields of the first start itself, the spread of `spread` and, under "starts", all.
template <typename AppendStart>
ResultTable over_starts(ConfigReader& in, ResultTable table, const AppendStart& append_start,
                        const char* spread) {
  const Index starts = in.integer("starts");
  std::vector<nlohmann::json> results;
  for (Index k = 0; k < starts; ++k)
    results.push_back(
        append_start(static_cast<std::size_t>(k), read_seed(in) + static_cast<std::uint64_t>(k), table));
  table.summary = results.front();
  table.summary["starts"] = results;
  table.summary["spread"] = starts_spread(results, spread);
  return table;
}

/// Split rate at the unspecialised saddle, where the note gives one: softmax and bayes on flip2, H >= 2.
std::optional<SplitRate> saddle_rate(ConfigReader& in, HeadActivation activation, const Prior& prior,
                                     const RunControl& run);

/// Experiments on the flow, in heads_flow.cpp.
ResultTable flow_experiment(ConfigReader& in, const RunControl& run);
ResultTable prune_experiment(ConfigReader& in, const RunControl& run);
ResultTable attention_experiment(ConfigReader& in, const RunControl& run);

/// Experiments on SGD, in heads_sgd.cpp.
ResultTable sgd_experiment(ConfigReader& in, const RunControl& run);
ResultTable compare_experiment(ConfigReader& in, const RunControl& run);

/// A flow on kept samples beside one on fresh samples, in heads_resampling.cpp.
ResultTable resampling_experiment(ConfigReader& in, const RunControl& run);

/// SGD on pictures, and its times over the size of its starts, in heads_digits.cpp.
ResultTable digits_experiment(ConfigReader& in, const RunControl& run);
ResultTable digit_times_experiment(ConfigReader& in, const RunControl& run);

/// Times of flows over the size of their starts, in heads_flow_times.cpp.
ResultTable phase_transition_experiment(ConfigReader& in, const RunControl& run);
ResultTable feature_times_experiment(ConfigReader& in, const RunControl& run);

}  // namespace widelimit::cli
