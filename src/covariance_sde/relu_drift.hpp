#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "widelimit/covariance_sde/model.hpp"

/// The ReLU drift in the form the time steps use: without a square root of a correlation near one.
namespace widelimit::covariance_sde {

/// sin(theta) - theta cos(theta), theta in [0, pi]. Below 0.5 by the alternating series, whose relative error
/// is below 4e-15 there; the direct form has lost its digits by then.
inline double sine_minus_theta_cosine(double theta, double sine, double cosine) {
  if (theta >= 0.5) return sine - theta * cosine;
  const double t = theta * theta;
  const double tail = 1 - t / 54 * (1 - t / 88 * (1 - t / 130 * (1 - t / 180)));
  return theta * t / 3 * (1 - t / 10 * (1 - t / 28 * tail));
}

/// (c_+ - c_-)^2 / (2 pi).
inline double relu_drift_scale(ShapedSlopes slopes) {
  const double gap = slopes.plus - slopes.minus;
  return gap * gap / (2 * std::numbers::pi);
}

/// sqrt(pq) g(rho) for variances p, q and covariance c. The angle comes from the determinant pq - c^2 after
/// Kahan: near rho = 1 an arccos of the rounded correlation would not know the angle.
inline double scaled_correlation_drift(double p, double q, double c) {
  const double cc = c * c;
  const double determinant = std::max(std::fma(p, q, -cc) + std::fma(-c, c, cc), 0.0);
  const double norm = std::sqrt(p * q);
  if (!(norm > 0)) return 0;
  const double root = std::sqrt(determinant);
  return norm * sine_minus_theta_cosine(std::atan2(root, c), root / norm, std::clamp(c / norm, -1.0, 1.0));
}

}  // namespace widelimit::covariance_sde
