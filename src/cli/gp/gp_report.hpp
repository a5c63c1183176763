#pragma once

#include <string>

#include "cli/gp/gp_run.hpp"

namespace widelimit::cli {

/// The heading of the table, and one line for each prediction.
[[nodiscard]] std::string gp_table(const GpResult& result);

/// A line for each regulariser that was chosen at the end of its candidates where a better one may lie beyond, or given
/// below the rounding errors. As in EdgeFacts.
[[nodiscard]] std::string edge_notes(const GpResult& result, bool is_double, bool rows_repeat);

}  // namespace widelimit::cli
