#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/numerics/statistics.hpp"
#include "widelimit/results/picture.hpp"
#include "widelimit/results/table.hpp"

namespace widelimit::results {

/// What the numbers of a file come from. Every file of a theory says so itself, because files are moved out of their
/// folders.
struct Origin {
  std::string command;                     ///< E.g. "sde simulate".
  nlohmann::ordered_json configuration;    ///< What was asked for.
  std::optional<std::uint64_t> seed = {};  ///< None where nothing is drawn.
};

/// "widelimit" (the version), "command", "configuration" and "seed", the value of "origin" in JSON files.
[[nodiscard]] nlohmann::ordered_json origin_json(const Origin& origin);
/// The same as the first lines of a CSV file, each after "# ".
[[nodiscard]] std::string origin_comment(const Origin& origin);

/// {"value", "standard_error"}.
[[nodiscard]] nlohmann::json estimate_json(const numerics::Estimate& estimate);

/// The outcome of an experiment.
struct Results {  // NOLINT(bugprone-exception-escape): json's destructor may allocate
  Origin origin = {};
  nlohmann::json summary = nlohmann::json::object();  ///< Named results, e.g. the loss of trained heads.
  Table table = {};
  /// Why values of a column, or of the summary, do not exist, by its name.
  Table::Notes notes = {};
  /// Further tables by name. Files have those that the row of the experiment names.
  std::map<std::string, Table> tables = {};
  /// For callers of the library alone, by name.
  nlohmann::json unwritten = nlohmann::json::object();
  /// Those of a folder, in the order of their names in the row of the experiment. Nothing where there is none.
  std::vector<std::function<std::optional<Picture>()>> pictures = {};
  nlohmann::ordered_json shapes = {};  ///< Of what the run had, for the record of a folder.
};

/// The last look at results before they are written, the same for all theories: notes on what has no value come into
/// the summary under "notes". What is no number without a note gets one, and a warning: these are returned.
[[nodiscard]] std::vector<std::string> note_missing(Results& results);

}  // namespace widelimit::results
