#include "widelimit/propagation/critical.hpp"

#include <cmath>

#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/exponent_at.hpp"
#include "propagation/roots.hpp"

namespace widelimit::propagation {

namespace {

constexpr double lowest_gain = 0.05, highest_gain = 60;
constexpr double lowest_strength = 1e-6, highest_strength = 1 - 1e-12;
constexpr int strength_steps = 64;

std::optional<double> critical(Coordinate coordinate, double low, double high, Exponent which,
                               const PlaneParameters& base) {
  PlaneParameters point = base;
  const bool same_mlp = !changes_mlp(coordinate);
  const MlpStatistics mlp = same_mlp ? mlp_statistics(base.parameters) : MlpStatistics{};
  return bracketed_root(
      [&](double value) {
        set_coordinate(point, coordinate, value);
        return same_mlp ? exponent_at(which, point, mlp) : exponent_at(which, point);
      },
      low, high);
}

/// The fixed parameter must be legal whatever the free one starts as.
PlaneParameters checked(const char* where, const Parameters& parameters, Coordinate free,
                        const ExponentOptions& options) {
  PlaneParameters point = plane_parameters(parameters, options);
  set_coordinate(point, free, free == Coordinate::sigma_w ? 1 : 0.5);
  require_parameters(where, point.parameters);
  return point;
}

/// L ln(1 + r) - ln(n - 1), which vanishes at the kink; rises with alpha_A.
double kink_condition(const PlaneParameters& point) {
  const MlpStatistics mlp = mlp_statistics(point.parameters);
  const CollapsedPoint collapsed = collapsed_point_of("gradient_kink", point.parameters, mlp.k_out, mlp.f);
  return point.options.depth * std::log1p(collapsed.r) - std::log(point.tokens - 1);
}

/// The kink along lambda_g = 0 when `outer` is the strength that rises and `inner` the root for it.
double find_kink(PlaneParameters& point, Coordinate outer, Coordinate inner, double low, double high) {
  const auto condition = [&](double strength) {
    set_coordinate(point, outer, strength);
    const std::optional<double> root = critical(inner, low, high, Exponent::gradient, point);
    if (!root) return std::nan("");
    set_coordinate(point, inner, *root);
    return kink_condition(point);
  };
  double previous = 0, value_before = std::nan("");
  for (int step = 1; step < strength_steps; ++step) {
    const double strength = static_cast<double>(step) / strength_steps, value = condition(strength);
    if (value_before <= 0 && value >= 0) {
      const std::optional<double> root = bracketed_root(condition, previous, strength);
      if (root) {
        condition(*root);
        return *root;
      }
    }
    previous = strength;
    value_before = value;
  }
  throw NumericalError(fmt::format(
      "gradient_kink: lambda_g = 0 has no kink over {} and {} with tokens = {}, depth = {}, sigma_w = {}",
      coordinate_name(outer), coordinate_name(inner), point.tokens, point.options.depth,
      point.parameters.sigma_w));
}

CriticalInitialisation described(Parameters parameters, Index depth) {
  const CollapsedPoint point = collapsed_point(parameters);
  const auto n = static_cast<double>(parameters.tokens), length = static_cast<double>(depth);
  const double lambda_g = gradient_exponent(point, n, length);
  return {std::move(parameters), point.lambda_a(), lambda_g, length * lambda_g};
}

[[noreturn]] void fail(const char* where, const char* free, const Parameters& parameters) {
  throw NumericalError(
      fmt::format("{}: no {} is critical at alpha_A = {}, alpha_M = {}, sigma_w = {}, sigma_out = {}", where,
                  free, parameters.alpha_A, parameters.alpha_M, parameters.sigma_w,
                  parameters.sigma_out.value(parameters.sigma_w)));
}

/// Strengths alpha_A = a, alpha_M = a / ratio on lambda_a = 0 with r equal to the largest allowed.
Parameters on_line_with_growth(Parameters parameters, Index depth, double tolerance) {
  constexpr const char* where = "critical_initialisation";
  require_positive(where, "alpha_A", parameters.alpha_A);
  require_positive(where, "alpha_M", parameters.alpha_M);
  const auto n = static_cast<double>(parameters.tokens);
  const double largest_r = std::expm1(std::log1p(n * std::expm1(tolerance)) / static_cast<double>(depth));
  const double larger = std::max(parameters.alpha_A, parameters.alpha_M);
  const double unit_A = parameters.alpha_A / larger, unit_M = parameters.alpha_M / larger;
  // Beyond the end of the line (no gain is critical) the strengths are too large.
  const auto excess = [&](double strength) {
    parameters.alpha_A = strength * unit_A;
    parameters.alpha_M = strength * unit_M;
    const std::optional<double> gain = critical_sigma_w(Exponent::angle, parameters);
    if (!gain) return 1.0;
    parameters.sigma_w = *gain;
    return 1 - largest_r / collapsed_point(parameters).r;
  };
  constexpr double smallest = 1e-4;
  const std::optional<double> strength = bracketed_root(excess, smallest, highest_strength);
  if (!strength || !(std::abs(excess(*strength)) < 1e-6)) fail(where, "strength with a gain", parameters);
  return parameters;
}

}  // namespace

std::optional<double> critical_sigma_w(Exponent which, const Parameters& parameters,
                                       const ExponentOptions& options) {
  return critical(Coordinate::sigma_w, lowest_gain, highest_gain, which,
                  checked("critical_sigma_w", parameters, Coordinate::sigma_w, options));
}

std::optional<double> critical_alpha_M(Exponent which, const Parameters& parameters,
                                       const ExponentOptions& options) {
  return critical(Coordinate::alpha_M, lowest_strength, highest_strength, which,
                  checked("critical_alpha_M", parameters, Coordinate::alpha_M, options));
}

std::optional<double> critical_alpha_A(Exponent which, const Parameters& parameters,
                                       const ExponentOptions& options) {
  return critical(Coordinate::alpha_A, lowest_strength, highest_strength, which,
                  checked("critical_alpha_A", parameters, Coordinate::alpha_A, options));
}

double small_strength_gain(Exponent which, const Parameters& parameters, double strength_ratio) {
  constexpr const char* where = "small_strength_gain";
  require_positive(where, "strength_ratio", strength_ratio);
  Parameters point = checked(where, parameters, Coordinate::alpha, {}).parameters;
  // To first order in the squared strengths lambda_a q = alpha_M^2 (f - k_out) - alpha_A^2, and lambda_g is
  // lambda_a + r / n.
  const double mean_share = which == Exponent::gradient ? 1 / static_cast<double>(parameters.tokens) : 0;
  const double rise = strength_ratio * strength_ratio * (1 - mean_share);
  const std::optional<double> gain = bracketed_root(
      [&](double sigma_w) {
        point.sigma_w = sigma_w;
        const MlpStatistics mlp = mlp_statistics(point);
        return mlp.f - mlp.k_out - rise;
      },
      lowest_gain, highest_gain);
  if (!gain)
    throw NumericalError(
        fmt::format("{}: the boundaries do not meet at alpha_A / alpha_M = {}: f - k_out does not reach {} "
                    "for sigma_w in "
                    "[{}, {}]",
                    where, strength_ratio, strength_ratio * strength_ratio, lowest_gain, highest_gain));
  return *gain;
}

StrengthAndGain gradient_kink(const Parameters& parameters, const ExponentOptions& options) {
  PlaneParameters point = checked("gradient_kink", parameters, Coordinate::sigma_w, options);
  const double alpha = find_kink(point, Coordinate::alpha, Coordinate::sigma_w, lowest_gain, highest_gain);
  return {alpha, point.parameters.sigma_w};
}

Strengths gradient_kink_of_strengths(const Parameters& parameters, const ExponentOptions& options) {
  PlaneParameters point = checked("gradient_kink_of_strengths", parameters, Coordinate::alpha, options);
  const double alpha_A =
      find_kink(point, Coordinate::alpha_A, Coordinate::alpha_M, lowest_strength, highest_strength);
  return {alpha_A, point.parameters.alpha_M};
}

CriticalInitialisation critical_initialisation(const Parameters& parameters, Index depth, FreeParameters free,
                                               double tolerance) {
  constexpr const char* where = "critical_initialisation";
  require_at_least(where, "depth", static_cast<double>(depth), 1);
  require_positive(where, "tolerance", tolerance);
  require_parameters(where, parameters);
  Parameters result = parameters;
  std::optional<double> root;
  switch (free) {
    case FreeParameters::strengths_and_gain:
      return described(on_line_with_growth(parameters, depth, tolerance), depth);
    case FreeParameters::gain:
      root = critical_sigma_w(Exponent::angle, parameters);
      if (!root) fail(where, "sigma_w", parameters);
      result.sigma_w = *root;
      break;
    case FreeParameters::mlp_strength:
      root = critical_alpha_M(Exponent::angle, parameters);
      if (!root) fail(where, "alpha_M", parameters);
      result.alpha_M = *root;
      break;
    case FreeParameters::attention_strength:
      root = critical_alpha_A(Exponent::angle, parameters);
      if (!root) fail(where, "alpha_A", parameters);
      result.alpha_A = *root;
      break;
  }
  return described(std::move(result), depth);
}

CriticalInitialisation balanced_initialisation(const Parameters& parameters, Index depth, double weight_a,
                                               double weight_g) {
  constexpr const char* where = "balanced_initialisation";
  require_at_least(where, "depth", static_cast<double>(depth), 1);
  require_positive(where, "weight_a", weight_a);
  require_positive(where, "weight_g", weight_g);
  PlaneParameters point = checked(where, parameters, Coordinate::sigma_w, {});
  point.options.depth = static_cast<double>(depth);
  const std::optional<double> gain = bracketed_root(
      [&](double sigma_w) {
        point.parameters.sigma_w = sigma_w;
        const MlpStatistics mlp = mlp_statistics(point.parameters);
        return weight_a * exponent_at(Exponent::angle, point, mlp) +
               weight_g * exponent_at(Exponent::gradient, point, mlp);
      },
      lowest_gain, highest_gain);
  if (!gain) fail(where, "sigma_w", parameters);
  Parameters result = parameters;
  result.sigma_w = *gain;
  return described(std::move(result), depth);
}

}  // namespace widelimit::propagation
