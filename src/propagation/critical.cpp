#include "widelimit/propagation/critical.hpp"

#include <cmath>

#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/critical_line.hpp"
#include "propagation/roots.hpp"
#include "propagation/skips.hpp"
#include "widelimit/propagation/exponent_at.hpp"

namespace widelimit::propagation {

namespace {

constexpr double lowest_strength = 1e-6, highest_strength = 1 - 1e-12;
constexpr int strength_steps = 64;
constexpr int scan_steps = 64;  // An exponent may rise and fall along a parameter (GELU, SiLU).

std::vector<double> all_critical(Coordinate coordinate, Exponent which, const ParameterPoint& base) {
  ParameterPoint point = base;
  const bool same_mlp = !changes_mlp(coordinate), gain = coordinate == Coordinate::sigma_w;
  // Statistics of the MLP are the costly part, so that they are shared where the coordinate leaves them alone.
  const MlpStatistics mlp = same_mlp ? unchecked_mlp_statistics(base.parameters) : MlpStatistics{};
  return scanned_roots(
      [&](double value) {
        set_coordinate(point, coordinate, value);
        return same_mlp ? exponent_at(which, point, mlp) : exponent_at(which, point);
      },
      gain ? lowest_gain : lowest_strength, gain ? highest_gain : highest_strength, scan_steps);
}

std::optional<double> least_critical(Coordinate coordinate, Exponent which, const ParameterPoint& base) {
  const std::vector<double> roots = all_critical(coordinate, which, base);
  return roots.empty() ? std::nullopt : std::optional(roots.front());
}

/// The fixed parameter must be legal whatever the free one starts as.
ParameterPoint checked(const char* where, const Parameters& parameters, Coordinate free,
                       const ExponentOptions& options) {
  ParameterPoint point = parameter_point(parameters, options);
  // The free parameter may hold anything: a legal value takes its place before all are checked.
  set_coordinate(point, free, free == Coordinate::sigma_w ? 1 : 0.5);
  require_parameters(where, point.parameters);
  return point;
}

/// L ln(1 + r) - ln(n - 1), which vanishes at the kink; rises with alpha_A.
double kink_condition(const ParameterPoint& point) {
  const MlpStatistics mlp = unchecked_mlp_statistics(point.parameters);
  const CollapsedPoint collapsed = collapsed_point_of("gradient_kink", point.parameters, mlp.k_out, mlp.f);
  return point.options.depth * std::log1p(collapsed.r) - std::log(point.tokens - 1);
}

/// Moves the point to the kink along lambda_g = 0; `outer` is the strength that rises and `inner` the root for it.
void move_to_kink(ParameterPoint& point, Coordinate outer, Coordinate inner) {
  const auto condition = [&](double strength) {
    set_coordinate(point, outer, strength);
    const std::optional<double> root = least_critical(inner, Exponent::gradient, point);
    // NaN has no sign, so that the search passes over strengths without a root.
    if (!root) return std::nan("");
    set_coordinate(point, inner, *root);
    return kink_condition(point);
  };
  double previous = 0, value_before = std::nan("");
  for (int step = 1; step < strength_steps; ++step) {
    const double strength = static_cast<double>(step) / strength_steps, value = condition(strength);
    // The condition rises along the boundary; the first pair of values around 0 holds the kink.
    if (value_before <= 0 && value >= 0) {
      const std::optional<double> root = bracketed_root(condition, previous, strength);
      if (root) {
        condition(*root);
        return;
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

CriticalInitialisation described(Parameters parameters, const ExponentOptions& options) {
  const double lambda_a = exponent(Exponent::angle, parameters, options);
  const double lambda_g = exponent(Exponent::gradient, parameters, options);
  return {std::move(parameters), lambda_a, lambda_g, options.depth * lambda_g};
}

[[noreturn]] void fail(const char* where, std::string_view free, const Parameters& parameters) {
  throw NumericalError(
      fmt::format("{}: no {} is critical at alpha_A = {}, alpha_M = {}, sigma_w = {}, sigma_out = {}", where,
                  free, parameters.alpha_A, parameters.alpha_M, parameters.sigma_w,
                  parameters.sigma_out.value(parameters.sigma_w)));
}

/// What critical_values() can free.
ParameterPoint freed(const char* where, const Parameters& parameters, Coordinate free,
                     const ExponentOptions& options) {
  if (free != Coordinate::sigma_w && free != Coordinate::alpha_A && free != Coordinate::alpha_M)
    throw ArgumentError(fmt::format("{}: expected sigma_w, alpha_A or alpha_M to be free, got {}", where,
                                    coordinate_name(free)));
  return checked(where, parameters, free, options);
}

Coordinate freed_coordinate(FreeParameters one) {
  if (one == FreeParameters::gain) return Coordinate::sigma_w;
  return one == FreeParameters::mlp_strength ? Coordinate::alpha_M : Coordinate::alpha_A;
}

}  // namespace

std::vector<double> critical_values(Exponent which, Coordinate free, const Parameters& parameters,
                                    const ExponentOptions& options) {
  return all_critical(free, which, freed("critical_values", parameters, free, options));
}

std::optional<double> critical_value(Exponent which, Coordinate free, const Parameters& parameters,
                                     const ExponentOptions& options) {
  return least_critical(free, which, freed("critical_value", parameters, free, options));
}

double small_strength_gain(Exponent which, const Parameters& parameters, double strength_ratio) {
  constexpr const char* where = "small_strength_gain";
  require_positive(where, "strength_ratio", strength_ratio);
  if (parameters.skip_A || parameters.skip_M)
    throw ArgumentError(
        fmt::format("{}: expected skip connections that follow from the strengths, got others", where));
  Parameters point = checked(where, parameters, Coordinate::alpha, {}).parameters;
  // To first order in the squared strengths lambda_a q = alpha_M^2 (f - k_out) - alpha_A^2, and lambda_g is
  // lambda_a + r / n.
  const double mean_share = which == Exponent::gradient ? 1 / static_cast<double>(parameters.tokens) : 0;
  const double rise = strength_ratio * strength_ratio * (1 - mean_share);
  const std::optional<double> gain = bracketed_root(
      [&](double sigma_w) {
        point.sigma_w = sigma_w;
        const MlpStatistics mlp = unchecked_mlp_statistics(point);
        return mlp.f - mlp.k_out - rise;
      },
      lowest_gain, highest_gain);
  if (!gain)
    throw NumericalError(
        fmt::format("{}: the boundaries do not meet at alpha_A / alpha_M = {}: f - k_out does not reach {} "
                    "for sigma_w in [{}, {}]",
                    where, strength_ratio, strength_ratio * strength_ratio, lowest_gain, highest_gain));
  return *gain;
}

Parameters gradient_kink(Coordinate strength, const Parameters& parameters, const ExponentOptions& options) {
  constexpr const char* where = "gradient_kink";
  if (strength != Coordinate::alpha && strength != Coordinate::alpha_A)
    throw ArgumentError(
        fmt::format("{}: expected alpha or alpha_A to rise, got {}", where, coordinate_name(strength)));
  const bool with_gain = strength == Coordinate::alpha;
  ParameterPoint point =
      checked(where, parameters, with_gain ? Coordinate::sigma_w : Coordinate::alpha, options);
  move_to_kink(point, strength, with_gain ? Coordinate::sigma_w : Coordinate::alpha_M);
  return point.parameters;
}

CriticalInitialisation critical_initialisation(const Parameters& parameters, Index depth, FreeParameters free,
                                               double tolerance, AttentionMask mask) {
  constexpr const char* where = "critical_initialisation";
  require_at_least(where, "depth", depth, 1);
  require_positive(where, "tolerance", tolerance);
  require_parameters(where, parameters);
  const ExponentOptions options{.depth = static_cast<double>(depth), .mask = mask};
  if (free == FreeParameters::strengths_and_gain) {
    const auto strongest = strongest_on_line(parameters, options, tolerance);
    if (!strongest) fail(where, "strength with a gain", parameters);
    return described(*strongest, options);
  }
  const Coordinate coordinate = freed_coordinate(free);
  ParameterPoint point = parameter_point(parameters, options);
  const auto root = least_critical(coordinate, Exponent::angle, point);
  // An exponent that vanishes for no value of the free parameter is an error, with the fixed ones in its message.
  if (!root) fail(where, coordinate_name(coordinate), parameters);
  set_coordinate(point, coordinate, *root);
  return described(std::move(point.parameters), options);
}

CriticalInitialisation balanced_initialisation(const Parameters& parameters, Index depth, double weight_a,
                                               double weight_g, AttentionMask mask) {
  constexpr const char* where = "balanced_initialisation";
  require_at_least(where, "depth", depth, 1);
  require_positive(where, "weight_a", weight_a);
  require_positive(where, "weight_g", weight_g);
  const ExponentOptions options{.depth = static_cast<double>(depth), .mask = mask};
  ParameterPoint point = checked(where, parameters, Coordinate::sigma_w, options);
  const std::vector<double> gains = scanned_roots(
      [&](double sigma_w) {
        point.parameters.sigma_w = sigma_w;
        const MlpStatistics mlp = unchecked_mlp_statistics(point.parameters);
        return weight_a * exponent_at(Exponent::angle, point, mlp) +
               weight_g * exponent_at(Exponent::gradient, point, mlp);
      },
      lowest_gain, highest_gain, scan_steps);
  if (gains.empty()) fail(where, "sigma_w", parameters);
  Parameters result = parameters;
  result.sigma_w = gains.front();
  return described(std::move(result), options);
}

}  // namespace widelimit::propagation
