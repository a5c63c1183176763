#include "widelimit/propagation/exponent_at.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "numerics/count.hpp"
#include "numerics/finite_result.hpp"
#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/skips.hpp"

namespace widelimit::propagation {

namespace {

constexpr const char* where = "exponent";

struct CoordinateName {
  Coordinate coordinate;
  std::string_view name;
};

constexpr std::array<CoordinateName, 9> names{{{Coordinate::alpha, "alpha"},
                                               {Coordinate::alpha_A, "alpha_A"},
                                               {Coordinate::alpha_M, "alpha_M"},
                                               {Coordinate::sigma_w, "sigma_w"},
                                               {Coordinate::sigma_out, "sigma_out"},
                                               {Coordinate::sigma_A, "sigma_A"},
                                               {Coordinate::tokens, "tokens"},
                                               {Coordinate::depth, "depth"},
                                               {Coordinate::mlp_depth, "mlp_depth"}}};

Index whole_number(const char* name, double value) {
  return numerics::checked_count(std::round(value), largest_count, name);
}

double gradient_at(const ParameterPoint& point, const CollapsedPoint& collapsed) {
  if (point.options.mask == AttentionMask::full)
    return gradient_exponent(collapsed, point.tokens, point.options.depth);
  return causal_gradient_exponent_of(collapsed, point.parameters, whole_number("depth", point.options.depth));
}

double angle_at(const ParameterPoint& point, const MlpStatistics& mlp, const CollapsedPoint& collapsed) {
  const Parameters& parameters = point.parameters;
  if (point.options.angle == AngleMeasure::one_block)
    return one_block_limit_of(parameters, mlp.k_out, mlp.f, 1, point.options.mask);
  if (point.options.mask == AttentionMask::full) return collapsed.lambda_a();
  // The growth minus 1, like the lambda_a of full attention.
  return std::expm1(
      causal_angle_exponent_of(collapsed, parameters, whole_number("depth", point.options.depth)));
}

/// Exponents of networks whose norms have no fixed point: means over the depth, from norm 1.
double growth_at(Exponent which, const ParameterPoint& point, const MlpStatistics& mlp) {
  const ExponentOptions& options = point.options;
  if (options.formula == Formula::published)
    throw ArgumentError(
        "exponent: the published formula is that of a fixed point of the norm, got skip "
        "connections without one");
  if (which == Exponent::angle && options.angle == AngleMeasure::one_block)
    return one_block_limit_of(point.parameters, mlp.k_out, mlp.f, 1, options.mask);
  const EqualTokenGrowth growth = equal_token_growth_of(point.parameters, mlp.k_out, mlp.f, 1,
                                                        whole_number("depth", options.depth), options.mask);
  return which == Exponent::angle ? std::expm1(growth.angle) : growth.gradient;
}

}  // namespace

std::string_view coordinate_name(Coordinate coordinate) {
  for (const CoordinateName& entry : names)
    if (entry.coordinate == coordinate) return entry.name;
  return "";
}

Coordinate coordinate_of(std::string_view name) {
  std::string known;
  for (const CoordinateName& entry : names) {
    if (entry.name == name) return entry.coordinate;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw ArgumentError(fmt::format("coordinate: expected one of {}, got '{}'", known, name));
}

ParameterPoint parameter_point(const Parameters& base, const ExponentOptions& options) {
  return {base, static_cast<double>(base.tokens), options};
}

void set_coordinate(ParameterPoint& point, Coordinate coordinate, double value) {
  Parameters& parameters = point.parameters;
  switch (coordinate) {
    case Coordinate::alpha:
      parameters.alpha_A = parameters.alpha_M = value;
      return;
    case Coordinate::alpha_A:
      parameters.alpha_A = value;
      return;
    case Coordinate::alpha_M:
      parameters.alpha_M = value;
      return;
    case Coordinate::sigma_w:
      parameters.sigma_w = value;
      return;
    case Coordinate::sigma_out:
      parameters.sigma_out = OutputGain::fixed(value);
      return;
    case Coordinate::sigma_A:
      parameters.sigma_A = value;
      return;
    case Coordinate::tokens:
      // Formulas of full attention take the number of tokens as it is, all others take the rounded count.
      point.tokens = value;
      parameters.tokens = whole_number("tokens", value);
      return;
    case Coordinate::depth:
      point.options.depth = value;
      return;
    case Coordinate::mlp_depth:
      parameters.mlp_depth = static_cast<int>(whole_number("mlp_depth", value));
      return;
  }
}

/// Whether statistics of the MLP depend on the coordinate.
bool changes_mlp(Coordinate coordinate) {
  return coordinate == Coordinate::sigma_w || coordinate == Coordinate::sigma_out ||
         coordinate == Coordinate::mlp_depth;
}

double exponent_at(Exponent which, const ParameterPoint& point, const MlpStatistics& mlp) {
  require_ranges(where, point.parameters);
  require_at_least(where, "depth", point.options.depth, 1);
  if (!has_fixed_norm(point.parameters)) return growth_at(which, point, mlp);
  CollapsedPoint collapsed = collapsed_point_of(where, point.parameters, mlp.k_out, mlp.f);
  if (point.options.formula == Formula::published) {
    if (point.options.mask == AttentionMask::causal)
      throw ArgumentError("exponent: the published formula is for full attention, got a causal mask");
    collapsed = as_published(collapsed, point.parameters);
  }
  return which == Exponent::angle ? angle_at(point, mlp, collapsed) : gradient_at(point, collapsed);
}

double exponent_at(Exponent which, const ParameterPoint& point) {
  return exponent_at(which, point, unchecked_mlp_statistics(point.parameters));
}

double exponent(Exponent which, const Parameters& parameters, const ExponentOptions& options) {
  require_parameters(where, parameters);
  const double value = exponent_at(which, parameter_point(parameters, options), mlp_statistics(parameters));
  // A block that leaves nothing has the exponent -infinity.
  if (value == -std::numeric_limits<double>::infinity()) return value;
  return numerics::finite_result(where,
                                 which == Exponent::angle ? "the angle exponent" : "the gradient exponent",
                                 value, lower_gains(parameters));
}

}  // namespace widelimit::propagation
