#pragma once

#include <cmath>
#include <limits>

#include "numerics/central_slope.hpp"
#include "widelimit/numerics/activation.hpp"

/// Slopes of duals by differences of high order, which share nothing with the library's slopes but dual().
namespace widelimit::testing {

using numerics::central_slope;

/// The steps must keep within c^2 < pq: four of them are taken each way.
inline numerics::DualSlopes difference_slopes(const numerics::Activation& activation, double p, double q,
                                              double c, double step) {
  const auto along = [&](double left, double right, double covariance, double size) {
    const auto at = [&](double t) {
      return activation.dual(p + left * t, q + right * t, c + covariance * t);
    };
    return numerics::Dual<double>{central_slope([&](double t) { return at(t).value; }, size),
                                  central_slope([&](double t) { return at(t).derivative; }, size)};
  };
  const auto in_c = along(0, 0, 1, step * std::sqrt(p * q));
  return {activation.dual(p, q, c), along(1, 0, 0, step * p), along(0, 1, 0, step * q), in_c.derivative,
          in_c.value};
}

inline numerics::SelfSlopes difference_self_slopes(const numerics::Activation& activation, double p,
                                                   double step) {
  const auto at = [&](double t) { return activation.dual(p + t, p + t, p + t); };
  return {at(0),
          {central_slope([&](double t) { return at(t).value; }, step * p),
           central_slope([&](double t) { return at(t).derivative; }, step * p)}};
}

}  // namespace widelimit::testing
