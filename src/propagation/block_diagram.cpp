#include "widelimit/propagation/block_diagram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "numerics/roots.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::propagation {
namespace {

[[noreturn]] void fail_number(std::string_view place, const std::string& path, const std::string& message) {
  throw ArgumentError(fmt::format("{}: '{}': {}", place, path, message));
}

std::vector<std::string> paths_of(const std::vector<VariedNumber>& numbers) {
  if (numbers.empty() || numbers.size() > 2)
    throw ArgumentError(
        fmt::format("BlockVariation: expected one or two numbers of the network, got {}", numbers.size()));
  std::vector<std::string> paths;
  for (const VariedNumber& number : numbers) {
    if (number.values.size() < 2 || std::adjacent_find(number.values.begin(), number.values.end(),
                                                       std::greater_equal<>()) != number.values.end())
      fail_number("BlockVariation", number.path, "expected at least two ascending values");
    paths.push_back(number.path);
  }
  return paths;
}

/// Progress of several runs that take equally long, on any threads, as that of one run: what each has done is added up.
class SharedProgress {
 public:
  SharedProgress(const RunControl& run, std::size_t parts)
      : run_{run}, all_{static_cast<std::ptrdiff_t>(parts) * steps} {}

  /// The run of the next part, which adds what it does.
  [[nodiscard]] RunControl part() {
    RunControl control = run_;
    if (run_.progress)
      control.progress = [this, before = std::ptrdiff_t{0}](std::ptrdiff_t done, std::ptrdiff_t all) mutable {
        const std::ptrdiff_t now = done * steps / all;
        add(now - before);
        before = now;
      };
    return control;
  }

 private:
  static constexpr std::ptrdiff_t steps = 1000;

  void add(std::ptrdiff_t more) {
    const std::lock_guard lock(mutex_);
    run_.progress(done_ += more, all_);
  }

  const RunControl& run_;
  std::ptrdiff_t done_ = 0, all_;
  std::mutex mutex_;
};

BlockExponents exponents_at(const BlockVariation& variation, const std::vector<double>& values,
                            const VariationRun& run, const RunControl& control) {
  return block_exponents(variation.network_with(values), run.tokens, run.depth, run.start_norm, control);
}

double value_of(const BlockExponents& exponents, ZeroOf which) {
  return which == ZeroOf::angle ? exponents.angle.value : exponents.gradient.value;
}

}  // namespace

VariedNumber evenly_varied(const std::string& path, double from, double to, Index count, bool logarithmic) {
  constexpr const char* place = "evenly_varied";
  if (count < 2) fail_number(place, path, fmt::format("expected a count of at least 2, got {}", count));
  if (!(from < to) || !std::isfinite(from) || !std::isfinite(to))
    fail_number(place, path, fmt::format("expected ascending bounds, got {} and {}", from, to));
  if (logarithmic && !(from > 0))
    fail_number(place, path, fmt::format("a log scale needs positive bounds, got {}", from));
  VariedNumber number{path, {}, logarithmic};
  for (Index k = 0; k < count; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(count - 1);
    number.values.push_back(logarithmic ? from * std::pow(to / from, share) : from + share * (to - from));
  }
  number.values.back() = to;
  return number;
}

BlockVariation::BlockVariation(const Network& network, std::vector<VariedNumber> numbers)
    : places_(network, paths_of(numbers)), numbers_(std::move(numbers)) {}

Network BlockVariation::network_with(const std::vector<double>& values) const { return places_.with(values); }

std::vector<VariedExponents> exponents_over(const BlockVariation& variation, const VariationRun& run) {
  std::vector<VariedExponents> grid;
  if (variation.numbers().size() == 1) {
    for (const double value : variation.numbers().front().values) grid.push_back({{value}, {}});
  } else {
    for (const double first : variation.numbers().front().values)
      for (const double second : variation.numbers().back().values) grid.push_back({{first, second}, {}});
  }
  SharedProgress progress(run.control, grid.size());
  RunControl tasks = run.control;
  tasks.progress = {};
  numerics::on_threads(run.control.threads, [&] {
    numerics::for_each_task(static_cast<std::ptrdiff_t>(grid.size()), tasks, [&](std::ptrdiff_t i) {
      VariedExponents& point = grid[static_cast<std::size_t>(i)];
      // Points run on one thread each; block_exponents() reports progress of its own, which is
      // counted as a part of the whole.
      point.exponents = exponents_at(variation, point.values, run, progress.part());
    });
  });
  return grid;
}

namespace {

/// Two neighbours of a grid.
using Edge = std::pair<std::size_t, std::size_t>;

/// Along the last number first.
std::vector<Edge> edges_of(std::size_t points, std::size_t along) {
  std::vector<Edge> edges;
  for (std::size_t i = 1; i < points; ++i)
    if (i % along != 0) edges.emplace_back(i - 1, i);
  for (std::size_t i = 0; i + along < points; ++i) edges.emplace_back(i, i + along);
  return edges;
}

bool changes_sign(const std::vector<VariedExponents>& grid, const Edge& edge, ZeroOf which) {
  const double before = value_of(grid[edge.first].exponents, which),
               after = value_of(grid[edge.second].exponents, which);
  return !std::isnan(before) && !std::isnan(after) && std::signbit(before) != std::signbit(after);
}

/// The numbers at which the exponent vanishes on the edge, if there are any.
std::optional<std::vector<double>> root_on(const Edge& edge, const BlockVariation& variation,
                                           const std::vector<VariedExponents>& grid, ZeroOf which,
                                           const VariationRun& run) {
  const std::vector<double>& from = grid[edge.first].values;
  std::vector<double> values = grid[edge.second].values;
  // The two points of an edge differ in one number: the first one or the last one.
  const std::size_t varied = values.back() == from.back() ? 0 : values.size() - 1;
  RunControl control = run.control;
  control.progress = {};
  const auto at = [&](double value) {
    std::vector<double> numbers = values;
    numbers[varied] = value;
    return value_of(exponents_at(variation, numbers, run, control), which);
  };
  const auto root = numerics::bracketed_root(at, from[varied], values[varied]);
  if (!root) return std::nullopt;
  values[varied] = *root;
  return values;
}

/// Joins the points on the edges of each cell.
void join(ZeroLine& line, const std::map<Edge, std::size_t>& places, std::size_t points, std::size_t along) {
  for (std::size_t i = 0; i + along < points; ++i) {
    if ((i + 1) % along == 0) continue;
    // Edges go round the cell: of four crossings, neighbours in this order belong together.
    std::vector<std::size_t> crossings;
    for (const Edge& edge :
         {Edge{i, i + 1}, {i + 1, i + along + 1}, {i + along, i + along + 1}, {i, i + along}})
      if (const auto place = places.find(edge); place != places.end()) crossings.push_back(place->second);
    for (std::size_t k = 0; k + 1 < crossings.size(); k += 2)
      line.segments.emplace_back(crossings[k], crossings[k + 1]);
  }
}

}  // namespace

ZeroLine zeros_over(const BlockVariation& variation, const std::vector<VariedExponents>& grid, ZeroOf which,
                    const VariationRun& run) {
  const std::size_t along = variation.numbers().back().values.size();
  std::vector<Edge> edges = edges_of(grid.size(), along);
  std::erase_if(edges, [&](const Edge& edge) { return !changes_sign(grid, edge, which); });
  std::vector<std::optional<std::vector<double>>> roots(edges.size());
  numerics::on_threads(run.control.threads, [&] {
    numerics::for_each_task(static_cast<std::ptrdiff_t>(edges.size()), run.control, [&](std::ptrdiff_t i) {
      const auto at = static_cast<std::size_t>(i);
      roots[at] = root_on(edges[at], variation, grid, which, run);
    });
  });
  ZeroLine line;
  std::map<Edge, std::size_t> places;
  for (std::size_t k = 0; k < edges.size(); ++k)
    if (roots[k]) {
      places.emplace(edges[k], line.points.size());
      line.points.push_back(*roots[k]);
    }
  join(line, places, grid.size(), along);
  return line;
}

}  // namespace widelimit::propagation
