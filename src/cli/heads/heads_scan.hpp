#pragma once

#include <filesystem>

#include "cli/heads/heads_experiment.hpp"

/// Scans: one experiment at every point of a grid of its own fields.
namespace widelimit::cli {

/// Whether configurations of the experiment may have "scan".
[[nodiscard]] bool has_scans(std::string_view experiment);

/// Whether the configuration asks for a scan, of an experiment that has them.
[[nodiscard]] bool is_scan(std::string_view experiment, const nlohmann::json& config);

/// Runs the experiment at every point of the grid of "scan": {"heads": [1, 2, 4], "prior.nu": [1, 10]}, the last list
/// fastest. One table for all: its first columns are the scanned fields, then those of the experiment (of flow
/// one row a point with what its summary has), and the summary has the list "points".
///
/// `kept`: a file that gets every point as soon as it is done, from which another call with the same configuration goes
/// on, and which is gone after the last; empty: none.
///
/// Progress counts points. Errors  as run_experiment(), with the point in front; NetworkError naming a list that is
/// none, or a field that is scanned and given too; DataError if `kept` belongs to another configuration or version.
[[nodiscard]] ResultTable run_scan(std::string_view experiment, const nlohmann::json& config,
                                   const RunControl& run, const std::filesystem::path& kept = {});

/// gnuplot script of the table of a scan: medians over the starts, a line a point of the lists that are not the x axis.
[[nodiscard]] std::string scan_script(std::string_view experiment, const ResultTable& table);

}  // namespace widelimit::cli
