#pragma once

#include <string>
#include <vector>

#include "widelimit/gp/selection.hpp"

/// A regulariser that was chosen at the end of the candidates: a better one may lie beyond.
namespace widelimit::cli {

enum class GridEdge {
  none,
  smallest,           ///< Of several candidates.
  smallest_reliable,  ///< Candidates below it drown in the rounding errors of the kernel.
  largest
};

/// Of the candidate that was chosen; none where it was given, or alone.
[[nodiscard]] GridEdge edge_of(double chosen, const std::vector<gp::RegulariserScore>& candidates);

/// For JSON: "smallest", "smallest_reliable", "largest"; "" for none.
[[nodiscard]] const char* edge_name(GridEdge edge);

/// A line for people, or "". `remedy` says how to have other candidates: "--candidates".
[[nodiscard]] std::string edge_text(const std::string& kernel, double chosen,
                                    const std::vector<gp::RegulariserScore>& candidates,
                                    const std::string& remedy);

/// A line for people about a regulariser that was given, or "": below `floor` predictions may follow rounding errors.
[[nodiscard]] std::string below_floor_text(const std::string& kernel, double given, double floor);

}  // namespace widelimit::cli
