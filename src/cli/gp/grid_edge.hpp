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

/// What tells whether a better candidate lies beyond the edge.
struct EdgeFacts {
  gp::Criterion criterion;
  bool is_double;  ///< Whether kernels are computed in double.
  bool
      rows_repeat;  ///< Whether training rows have equal inputs, which speak for less noise than new ones have.
};

/// A line for people, or "": the criterion still improves clearly at the edge, over the candidate beside it, and
/// neither rounding errors nor rows that repeat are why. Clearly: by .01 nats a row, 1 nat of evidence, .5 % of
/// accuracy or 1 % of the squared error.
[[nodiscard]] std::string edge_text(const std::string& kernel, double chosen,
                                    const std::vector<gp::RegulariserScore>& candidates,
                                    const EdgeFacts& facts);

/// A line for people about a regulariser that was given, or "": below `floor` predictions may follow rounding errors.
[[nodiscard]] std::string below_floor_text(const std::string& kernel, double given, double floor,
                                           bool is_double);

}  // namespace widelimit::cli
