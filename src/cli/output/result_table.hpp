#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/results/results.hpp"

namespace widelimit::cli {

using results::estimate_json;
using results::matrix_json;
using results::Origin;
using results::origin_comment;
using results::origin_json;

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
