#pragma once

#include <string>

#include "cli/gp/gp_run.hpp"

namespace widelimit::cli {

/// The heading of the table, and one line for each prediction.
[[nodiscard]] std::string gp_table(const GpResult& result);

/// A line for each regulariser that was chosen at the end of its candidates, or given below the rounding errors.
[[nodiscard]] std::string edge_notes(const GpResult& result);

}  // namespace widelimit::cli
