#pragma once

#include <algorithm>

#include "numerics/slope_differences.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {

/// Whether products of the variances stay within the range of double in a formula.
template <typename Formula>
bool is_within_range(const Formula& formula, double p, double q) {
  const double smallest = std::min(p > 0 ? p : 1, q > 0 ? q : 1);
  return smallest >= 1e-140 && std::max(p, q) <= largest_variance_of(formula, Precision::wide);
}

/// The slopes of an activation's dual, read from its formula. Beyond the range of the formula they are differences of
/// the dual, which takes care of it.
template <typename Formula>
DualSlopes activation_slopes(const Activation& activation, const Formula& formula, double p, double q,
                             double c) {
  return is_within_range(formula, p, q) ? slopes_of(formula, p, q, c)
                                        : slopes_by_differences(activation, p, q, c);
}
template <typename Formula>
SelfSlopes activation_self_slopes(const Activation& activation, const Formula& formula, double p) {
  return is_within_range(formula, p, p) ? self_slopes_of(formula, p)
                                        : self_slopes_by_differences(activation, p);
}

}  // namespace widelimit::numerics::formula
