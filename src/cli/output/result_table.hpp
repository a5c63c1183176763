#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::cli {

/// What the numbers of a file come from. Every file of `sde`, `heads` and `propagation` says so itself,
/// because files are moved out of their folders.
struct Origin {
  std::string command;                     ///< E.g. "sde simulate".
  nlohmann::ordered_json configuration;    ///< What was asked for.
  std::optional<std::uint64_t> seed = {};  ///< None where nothing is drawn.
};

/// "widelimit" (the version), "command", "configuration" and "seed", the value of "origin" in JSON files.
[[nodiscard]] nlohmann::ordered_json origin_json(const Origin& origin);

/// The same as the first lines of a CSV file, each after "# ".
[[nodiscard]] std::string origin_comment(const Origin& origin);

/// A matrix as a list of rows.
[[nodiscard]] nlohmann::json matrix_json(const Matrix<double>& matrix);

/// {"value", "standard_error"}.
[[nodiscard]] nlohmann::json estimate_json(const numerics::Estimate& estimate);

/// The outcome of a command of `heads` or `propagation`.
struct ResultTable {  // NOLINT(bugprone-exception-escape): json's destructor may allocate
  Origin origin = {};
  nlohmann::json summary = nlohmann::json::object();  ///< Named results, e.g. the loss of trained heads.
  std::vector<std::string> columns = {};
  /// NaN, which JSON writes as null and CSV as nan, where a value does not exist.
  std::vector<std::vector<double>> rows = {};
  /// Why values of a column, or of the summary, do not exist, by its name.
  std::map<std::string, std::string> notes = {};
};

/// The last look at results before they are written, the same for all theories: the table's notes on what has no value
/// come into the summary under "notes". What is no number without a note gets one, and a warning on standard error.
void note_missing(ResultTable& table);
/// The same for a report without a table.
void note_missing(nlohmann::json& report);

/// Columns and rows as CSV, numbers as short as they read back.
[[nodiscard]] std::string csv_rows(const ResultTable& table);

}  // namespace widelimit::cli
