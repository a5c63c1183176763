#include "propagation/token_averages.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "propagation/arguments.hpp"

namespace widelimit::propagation {

namespace {

/// Columns of a matrix and weights with which sums over them are those over all columns.
struct WeightedColumns {
  std::vector<Index> columns;
  std::vector<double> weights;
};

constexpr Index points_of_octave = 16;

void add_every_column(WeightedColumns& chosen, Index begin, Index end) {
  for (Index column = begin; column < end; ++column) {
    chosen.columns.push_back(column);
    chosen.weights.push_back(1);
  }
}

/// Adds the columns next to the Chebyshev points of [begin, end - 1], each with the sum over all columns of its
/// polynomial of Lagrange.
void add_octave(WeightedColumns& chosen, Index begin, Index end) {
  const double middle = static_cast<double>(begin + end - 1) / 2,
               half = static_cast<double>(end - 1 - begin) / 2;
  std::array<double, points_of_octave> places{}, factors{}, weights{};
  for (std::size_t m = 0; m < places.size(); ++m)
    places[m] = std::round(middle - half * std::cos((static_cast<double>(m) + 0.5) * std::numbers::pi /
                                                    static_cast<double>(points_of_octave)));
  for (std::size_t m = 0; m < places.size(); ++m) {
    factors[m] = 1;
    // Distances over half of `half` keep the products of them near 1.
    for (const double other : places)
      if (other != places[m]) factors[m] *= half / 2 / (places[m] - other);
  }
  for (Index column = begin; column < end; ++column) {
    const auto at = static_cast<double>(column);
    if (const auto hit = std::find(places.begin(), places.end(), at); hit != places.end()) {
      weights[static_cast<std::size_t>(hit - places.begin())] += 1;
      continue;
    }
    std::array<double, points_of_octave> terms{};
    double sum = 0;
    for (std::size_t m = 0; m < places.size(); ++m) sum += terms[m] = factors[m] / (at - places[m]);
    for (std::size_t m = 0; m < places.size(); ++m) weights[m] += terms[m] / sum;
  }
  for (std::size_t m = 0; m < places.size(); ++m) {
    chosen.columns.push_back(static_cast<Index>(places[m]));
    chosen.weights.push_back(weights[m]);
  }
}

WeightedColumns columns_of(Index tokens) {
  // Below this width rounded Chebyshev points would meet.
  constexpr Index fewest = 2 * points_of_octave;
  WeightedColumns chosen;
  Index begin = std::min(fewest, tokens);
  add_every_column(chosen, 0, begin);
  while (begin < tokens) {
    const Index end = std::min(2 * begin, tokens);
    if (end - begin <= fewest)
      add_every_column(chosen, begin, end);
    else
      add_octave(chosen, begin, end);
    begin = end;
  }
  return chosen;
}

/// ln(e^a + e^b)
double log_of_sum(double a, double b) {
  const double larger = std::max(a, b);
  return larger + std::log1p(std::exp(-std::abs(a - b)));
}

/// Columns that are averaged together.
constexpr int lanes = 16;
using Lane = Eigen::Array<double, 1, lanes>;

/// Weighted sums over columns v of (factor M)^k, k = 0 .. depth.
struct ColumnSums {
  std::vector<double> squares, deviations;  ///< of |v|^2 and of |P v|^2
};

/// Columns of (factor M)^k times vectors, up to `lanes` of them: unit vectors at `begin`, or those that are 1 from
/// there on.
struct ColumnGroup {
  std::vector<Index> begin;
  std::vector<double> weights;
  bool ones = false;
  double factor = 1;
};

void add_columns(const ColumnGroup& group, Index tokens, ColumnSums& sums) {
  const std::size_t powers = sums.squares.size();
  std::vector<Lane> running(powers, Lane::Zero()), squares = running, totals = running;
  const Index first = *std::min_element(group.begin.begin(), group.begin.end());
  // Every power of a row needs the rows before it only by their sums.
  for (Index row = first; row < tokens; ++row) {
    Lane value = Lane::Zero();
    for (std::size_t lane = 0; lane < group.begin.size(); ++lane)
      if (group.begin[lane] == row || (group.ones && group.begin[lane] < row))
        value[static_cast<Index>(lane)] = 1;
    const double scale = group.factor / static_cast<double>(row + 1);
    squares[0] += value.square();
    totals[0] += value;
    for (std::size_t k = 1; k < powers; ++k) {
      running[k] += value;
      value = running[k] * scale;
      squares[k] += value.square();
      totals[k] += value;
    }
  }
  for (std::size_t k = 0; k < powers; ++k)
    for (std::size_t at = 0; at < group.begin.size(); ++at) {
      const auto lane = static_cast<Index>(at);
      const double total = totals[k][lane];
      sums.squares[k] += group.weights[at] * squares[k][lane];
      sums.deviations[k] +=
          group.weights[at] * (squares[k][lane] - total * total / static_cast<double>(tokens));
    }
}

/// The first column tends to the constants that M keeps, all others vanish as 2^-k in the end, its second eigenvalue:
/// they are doubled with every factor. P times the first is also -P times the sum of all others; the shorter of both
/// vectors loses less to the constants that P takes out.
AveragePowers computed_powers(Index tokens, Index depth) {
  const auto powers = static_cast<std::size_t>(depth) + 1;
  const ColumnSums none{std::vector<double>(powers, 0.0), std::vector<double>(powers, 0.0)};
  ColumnSums first = none, sum_of_others = none, others = none;
  add_columns({.begin = {0}, .weights = {1}}, tokens, first);
  add_columns({.begin = {1}, .weights = {1}, .ones = true, .factor = 2}, tokens, sum_of_others);
  const WeightedColumns chosen = columns_of(tokens);
  for (std::size_t at = 1; at < chosen.columns.size(); at += lanes) {
    const auto begin = static_cast<std::ptrdiff_t>(at),
               end = static_cast<std::ptrdiff_t>(std::min(at + lanes, chosen.columns.size()));
    add_columns({.begin = {chosen.columns.begin() + begin, chosen.columns.begin() + end},
                 .weights = {chosen.weights.begin() + begin, chosen.weights.begin() + end},
                 .factor = 2},
                tokens, others);
  }
  AveragePowers result;
  for (std::size_t k = 0; k < powers; ++k) {
    const double doubled = 2 * std::numbers::ln2 * static_cast<double>(k);
    result.all.push_back(log_of_sum(std::log(first.squares[k]), std::log(others.squares[k]) - doubled));
    const bool first_is_shorter = std::log(first.squares[k]) < std::log(sum_of_others.squares[k]) - doubled;
    const double of_first =
        first_is_shorter ? std::log(first.deviations[k]) : std::log(sum_of_others.deviations[k]) - doubled;
    result.differences.push_back(log_of_sum(of_first, std::log(others.deviations[k]) - doubled));
  }
  return result;
}

}  // namespace

const AveragePowers& average_powers(Index tokens, Index depth) {
  if (tokens > most_averaged_tokens)
    throw ArgumentError(fmt::format("exponents of a causal mask: expected at most {} tokens, got {}",
                                    most_averaged_tokens, tokens));
  struct Last {
    Index tokens = 0, depth = 0;
    AveragePowers powers;
  };
  thread_local Last last;
  if (last.tokens != tokens || last.depth != depth) last = {tokens, depth, computed_powers(tokens, depth)};
  return last.powers;
}

}  // namespace widelimit::propagation
