#include "cli/propagation/propagation_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/options/counts.hpp"
#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/exponents.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

Axis axis_of(const std::string& text, const char* option, Index count) {
  const std::vector<std::string> parts = split(text, ':');
  const auto fail = [&]() -> Axis {
    throw ArgumentError(fmt::format("{}: expected NAME:FROM:TO[:COUNT], got '{}'", option, text));
  };
  if (parts.size() < 3 || parts.size() > 4) return fail();
  double numbers[3] = {0, 0, static_cast<double>(count)};
  for (std::size_t k = 1; k < parts.size(); ++k) {
    const auto number = whole_text_number(parts[k]);
    if (!number) return fail();
    numbers[k - 1] = *number;
  }
  return naming_errors(option, [&] {
    return evenly_spaced(coordinate_of(parts[0]), numbers[0], numbers[1],
                         checked_points(numbers[2], 2, 2000, std::string(option) + ": COUNT"));
  });
}

void exclude_axes(PropagationOptions& options, const Axis& x, const Axis& y) {
  bool sets_A = false, sets_M = false;
  for (const auto& [axis, option] : {std::pair(&x, "--x"), std::pair(&y, "--y")}) {
    sets_A = sets_A || axis->coordinate == Coordinate::alpha || axis->coordinate == Coordinate::alpha_A;
    sets_M = sets_M || axis->coordinate == Coordinate::alpha || axis->coordinate == Coordinate::alpha_M;
    options.exclude(std::string(coordinate_name(axis->coordinate)),
                    fmt::format("has no effect together with the axis {}", option));
  }
  options.exclude_both("alpha", sets_A, sets_M, "has no effect together with the axes --x and --y");
}

bool has_boundaries(const Axis& x, const Axis& y, const Transformer& transformer) {
  const bool in_steps = transformer.mask == AttentionMask::causal || !has_fixed_norm(transformer.parameters);
  for (const Coordinate coordinate : {x.coordinate, y.coordinate}) {
    const bool counts = coordinate == Coordinate::depth || coordinate == Coordinate::tokens;
    if (coordinate == Coordinate::mlp_depth || (counts && in_steps)) return false;
  }
  return true;
}

ParameterRectangle rectangle_of(const Axis& x, const Axis& y) {
  return {x.coordinate, x.values.front(), x.values.back(), y.coordinate, y.values.front(), y.values.back()};
}

json curves_json(const std::vector<BoundaryCurve>& curves) {
  json result = json::array();
  for (const BoundaryCurve& curve : curves) {
    json points = json::array();
    for (const BoundaryPoint& point : curve.points) points.push_back({point.x, point.y});
    result.push_back({{"closed", curve.closed}, {"points", points}});
  }
  return result;
}

}  // namespace widelimit::cli
