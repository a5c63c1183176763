#include "cli/gp/grid_edge.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace widelimit::cli {

GridEdge edge_of(double chosen, const std::vector<gp::RegulariserScore>& candidates) {
  const auto lies = [&](auto beyond) { return std::none_of(candidates.begin(), candidates.end(), beyond); };
  if (candidates.size() < 2) return GridEdge::none;
  if (lies([&](const auto& other) { return other.relative_regulariser > chosen; })) return GridEdge::largest;
  if (lies([&](const auto& other) { return other.relative_regulariser < chosen; })) return GridEdge::smallest;
  if (lies([&](const auto& other) {
        return other.above_noise && other.unsolved.empty() && other.relative_regulariser < chosen;
      }))
    return GridEdge::smallest_reliable;
  return GridEdge::none;
}

const char* edge_name(GridEdge edge) {
  switch (edge) {
    case GridEdge::none:
      return "";
    case GridEdge::smallest:
      return "smallest";
    case GridEdge::smallest_reliable:
      return "smallest_reliable";
    case GridEdge::largest:
      return "largest";
  }
  return "";
}

std::string edge_text(const std::string& kernel, double chosen,
                      const std::vector<gp::RegulariserScore>& candidates, const std::string& remedy) {
  switch (edge_of(chosen, candidates)) {
    case GridEdge::none:
      return "";
    case GridEdge::smallest:
      return fmt::format(
          "{}: the best regulariser is the smallest of the grid, {:.3g}: a smaller one may be better ({})\n",
          kernel, chosen, remedy);
    case GridEdge::smallest_reliable:
      return fmt::format(
          "{}: the best regulariser, {:.3g}, is the smallest of the grid that is above the rounding "
          "errors of the kernel: with --precision double smaller ones count\n",
          kernel, chosen);
    case GridEdge::largest:
      return fmt::format(
          "{}: the best regulariser is the largest of the grid, {:.3g}: a larger one may be better ({})\n",
          kernel, chosen, remedy);
  }
  return "";
}

std::string below_floor_text(const std::string& kernel, double given, double floor) {
  if (given >= floor) return "";
  return fmt::format(
      "{}: the regulariser {:.3g} and the kernel's smallest eigenvalue are less than ten times the errors of "
      "the kernel: predictions follow these; take {:.2g} or more, or --precision double\n",
      kernel, given, floor);
}

}  // namespace widelimit::cli
