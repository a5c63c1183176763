#include "cli/block_variation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cli/text_parts.hpp"
#include "numerics/count.hpp"
#include "numerics/roots.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

using propagation::BlockExponents;
using propagation::Index;

struct VariedRange {
  std::string path;
  double from = 0, to = 0;
  Index count = 0;
  bool logarithmic = false;
};

[[noreturn]] void fail_spec(const std::string& spec, const std::string& message) {
  throw ArgumentError(fmt::format("--vary '{}': {}", spec, message));
}

double varied_bound(const std::string& spec, const std::string& text) {
  const auto number = whole_text_number(text);
  if (!number || !std::isfinite(*number))
    fail_spec(spec, fmt::format("expected PATH=FROM:TO:COUNT[:linear|log] with numbers, got '{}'", text));
  return *number;
}

VariedRange range_in(const std::string& spec) {
  const std::size_t equals = spec.rfind('=');
  if (equals == std::string::npos || equals == 0)
    fail_spec(spec, "expected PATH=FROM:TO:COUNT[:linear|log], there is no PATH=");
  const auto parts = split(spec.substr(equals + 1), ':');
  if (parts.size() < 3 || parts.size() > 4)
    fail_spec(spec, "expected PATH=FROM:TO:COUNT[:linear|log], two bounds, a count and perhaps a scale");
  VariedRange range{
      spec.substr(0, equals), varied_bound(spec, parts[0]), varied_bound(spec, parts[1]),
      numerics::checked_count(varied_bound(spec, parts[2]), 1e5, fmt::format("--vary '{}': COUNT", spec))};
  if (parts.size() == 4 && parts[3] != "linear" && parts[3] != "log")
    fail_spec(spec, fmt::format("expected linear or log behind the count, got '{}'", parts[3]));
  range.logarithmic = parts.size() == 4 && parts[3] == "log";
  if (range.count < 2) fail_spec(spec, fmt::format("expected a count of at least 2, got {}", range.count));
  if (!(range.from < range.to))
    fail_spec(spec, fmt::format("expected ascending bounds, got {} and {}", range.from, range.to));
  if (range.logarithmic && !(range.from > 0))
    fail_spec(spec, fmt::format("a log scale needs positive bounds, got {}", range.from));
  return range;
}

std::vector<double> values_in(const VariedRange& range) {
  std::vector<double> values;
  for (Index k = 0; k < range.count; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(range.count - 1);
    values.push_back(range.logarithmic ? range.from * std::pow(range.to / range.from, share)
                                       : range.from + share * (range.to - range.from));
  }
  values.back() = range.to;
  return values;
}

BlockExponents exponents_at(const BlockVariation& variation, const std::vector<double>& values,
                            const VariationRun& run) {
  RunControl control = run.control;
  control.progress = {};
  return propagation::block_exponents(variation.network_with(values), run.tokens, run.depth, run.start_norm,
                                      control);
}

double value_of(const BlockExponents& exponents, ZeroOf which) {
  return which == ZeroOf::angle ? exponents.angle.value : exponents.gradient.value;
}

}  // namespace

BlockVariation::BlockVariation(const Network& network, const std::vector<std::string>& specs)
    : document_(nlohmann::json::parse(to_json(network))) {
  if (specs.empty() || specs.size() > 2)
    throw ArgumentError(
        fmt::format("--vary: expected one or two numbers of the network, got {}", specs.size()));
  for (const std::string& spec : specs) {
    const VariedRange range = range_in(spec);
    const NetworkNumber number(document_, range.path, fmt::format("--vary '{}'", spec));
    if (number.is_integer())
      fail_spec(spec, "the network has an integer there, which cannot change continuously");
    if (std::find(places_.begin(), places_.end(), number) != places_.end())
      fail_spec(spec, "this number is varied already");
    numbers_.push_back({range.path, values_in(range), range.logarithmic});
    places_.push_back(number);
  }
}

Network BlockVariation::network_with(const std::vector<double>& values) const {
  return widelimit::network_with(document_, places_, values);
}

std::vector<VariedExponents> exponents_over(const BlockVariation& variation, const VariationRun& run) {
  std::vector<VariedExponents> grid;
  if (variation.numbers().size() == 1) {
    for (const double value : variation.numbers().front().values) grid.push_back({{value}, {}});
  } else {
    for (const double first : variation.numbers().front().values)
      for (const double second : variation.numbers().back().values) grid.push_back({{first, second}, {}});
  }
  numerics::on_threads(run.control.threads, [&] {
    numerics::for_each_task(static_cast<std::ptrdiff_t>(grid.size()), run.control, [&](std::ptrdiff_t i) {
      VariedExponents& point = grid[static_cast<std::size_t>(i)];
      point.exponents = exponents_at(variation, point.values, run);
    });
  });
  return grid;
}

namespace {

/// Roots on the edges of a grid, each computed once.
class ZerosOnEdges {
 public:
  ZerosOnEdges(const BlockVariation& variation, const std::vector<VariedExponents>& grid, ZeroOf which,
               const VariationRun& run)
      : variation_{variation}, grid_{grid}, which_{which}, run_{run} {}

  /// The point on the edge between two neighbours, if there is one.
  std::optional<std::size_t> between(std::size_t from, std::size_t to) {
    const auto [place, is_new] = known_.try_emplace({from, to});
    if (is_new) place->second = find(from, to);
    return place->second;
  }

  ZeroLine line;

 private:
  std::optional<std::size_t> find(std::size_t from, std::size_t to) {
    const double before = value_of(grid_[from].exponents, which_),
                 after = value_of(grid_[to].exponents, which_);
    if (std::isnan(before) || std::isnan(after) || std::signbit(before) == std::signbit(after))
      return std::nullopt;
    std::vector<double> values = grid_[to].values;
    const std::size_t varied = values.back() == grid_[from].values.back() ? 0 : values.size() - 1;
    const auto at = [&](double value) {
      values[varied] = value;
      return value_of(exponents_at(variation_, values, run_), which_);
    };
    const auto root = numerics::bracketed_root(at, grid_[from].values[varied], grid_[to].values[varied]);
    if (!root) return std::nullopt;
    values[varied] = *root;
    line.points.push_back(values);
    return line.points.size() - 1;
  }

  const BlockVariation& variation_;
  const std::vector<VariedExponents>& grid_;
  ZeroOf which_;
  const VariationRun& run_;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<std::size_t>> known_;
};

}  // namespace

ZeroLine zeros_over(const BlockVariation& variation, const std::vector<VariedExponents>& grid, ZeroOf which,
                    const VariationRun& run) {
  ZerosOnEdges zeros(variation, grid, which, run);
  const std::size_t along = variation.numbers().back().values.size();
  for (std::size_t i = 1; i < grid.size(); ++i)
    if (i % along != 0) zeros.between(i - 1, i);
  for (std::size_t i = 0; i + along < grid.size(); ++i) zeros.between(i, i + along);
  for (std::size_t i = 0; i + along < grid.size(); ++i) {
    if ((i + 1) % along == 0) continue;
    // In the order around the cell: two of four crossings in a row belong together.
    std::vector<std::size_t> crossings;
    for (const auto& [from, to] :
         {std::pair{i, i + 1}, {i + 1, i + along + 1}, {i + along, i + along + 1}, {i, i + along}})
      if (const auto point = zeros.between(from, to)) crossings.push_back(*point);
    for (std::size_t k = 0; k + 1 < crossings.size(); k += 2)
      zeros.line.segments.emplace_back(crossings[k], crossings[k + 1]);
  }
  return std::move(zeros.line);
}

}  // namespace widelimit::cli
