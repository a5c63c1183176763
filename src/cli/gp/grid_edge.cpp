#include "cli/gp/grid_edge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/options/inference_options.hpp"

namespace widelimit::cli {
namespace {

/// The candidate beside the chosen one, on the inner side of the edge, with scores; null if there is none.
const gp::RegulariserScore* beside_edge(GridEdge edge, double chosen,
                                        const std::vector<gp::RegulariserScore>& candidates) {
  const gp::RegulariserScore* next = nullptr;
  for (const gp::RegulariserScore& other : candidates) {
    if (!other.above_noise || !other.unsolved.empty() || other.relative_regulariser == chosen) continue;
    const bool is_nearer = next == nullptr || (edge == GridEdge::largest) ==
                                                  (other.relative_regulariser > next->relative_regulariser);
    if (is_nearer) next = &other;
  }
  return next;
}

/// What of a criterion counts as clearly better than `other`.
double clear_step(gp::Criterion criterion, double other) {
  switch (criterion) {
    case gp::Criterion::accuracy:
      return 0.005;
    case gp::Criterion::mean_squared_error:
      return 0.01 * std::abs(other);
    case gp::Criterion::evidence:
      return 1;
    default:
      return 0.01;
  }
}

bool improves_at_edge(GridEdge edge, double chosen, const std::vector<gp::RegulariserScore>& candidates,
                      gp::Criterion criterion) {
  const auto best = std::ranges::find(candidates, chosen, &gp::RegulariserScore::relative_regulariser);
  const gp::RegulariserScore* next = beside_edge(edge, chosen, candidates);
  if (best == candidates.end() || next == nullptr) return false;
  const double there = score_by(*best, criterion), before = score_by(*next, criterion);
  const double gain = higher_is_better(criterion) ? there - before : before - there;
  return gain > clear_step(criterion, before);
}

}  // namespace

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
                      const std::vector<gp::RegulariserScore>& candidates, const EdgeFacts& facts) {
  const GridEdge edge = edge_of(chosen, candidates);
  if (edge == GridEdge::none || !improves_at_edge(edge, chosen, candidates, facts.criterion)) return "";
  if (edge == GridEdge::largest)
    return fmt::format(
        "{}: the best regulariser is the largest of the grid, {:.3g}, and clearly better than the next: a "
        "larger one may be better still (--candidates)\n",
        kernel, chosen);
  if (facts.rows_repeat) return "";
  if (edge == GridEdge::smallest)
    return fmt::format(
        "{}: the best regulariser is the smallest of the grid, {:.3g}, and clearly better than the next: a "
        "smaller one may be better still (--candidates)\n",
        kernel, chosen);
  if (facts.is_double) return "";
  return fmt::format(
      "{}: the best regulariser, {:.3g}, is the smallest of the grid that is above the rounding "
      "errors of the kernel: with --precision double smaller ones count\n",
      kernel, chosen);
}

std::string below_floor_text(const std::string& kernel, double given, double floor, bool is_double) {
  if (given >= floor) return "";
  return fmt::format(
      "{}: the regulariser {:.3g} and the kernel's smallest eigenvalue are less than ten times the errors of "
      "the kernel: predictions follow these; take {:.2g} or more{}\n",
      kernel, given, floor, is_double ? "" : ", or --precision double");
}

}  // namespace widelimit::cli
