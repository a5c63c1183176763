#pragma once

#include <algorithm>

#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {

/// Whether products of the variances stay within the range of double in a formula.
template <typename Formula>
bool is_within_range(const Formula& formula, double p, double q) {
  const double smallest = std::min(p > 0 ? p : 1, q > 0 ? q : 1);
  return smallest >= 1e-140 && std::max(p, q) <= largest_variance_of(formula, Precision::wide);
}

/// The slopes of an activation's dual, read from its formula: in long double where its products leave the range of
/// double.
template <typename Formula>
DualSlopes activation_slopes(const Formula& formula, double p, double q, double c) {
  return is_within_range(formula, p, q) ? slopes_of(formula, p, q, c)
                                        : slopes_of<long double>(formula, p, q, c);
}
template <typename Formula>
SelfSlopes activation_self_slopes(const Formula& formula, double p) {
  return is_within_range(formula, p, p) ? self_slopes_of(formula, p)
                                        : self_slopes_of<long double>(formula, p);
}

}  // namespace widelimit::numerics::formula
