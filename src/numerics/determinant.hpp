#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

/// What the covariance matrix of two variables, with variances p and q and covariance c, says beside its numbers.
namespace widelimit::numerics {

/// pq - c^2 in double, at least 0. The plain difference loses all digits near perfect correlation, where
/// near-duplicate inputs sit; the two fused products (Kahan) keep them. p == q == c gives exactly 0.
inline double determinant(double p, double q, double c) {
  const double cc = c * c;
  return std::max(std::fma(p, q, -cc) + std::fma(-c, c, cc), 0.0);
}

/// The products of two floats are exact in double.
inline double determinant(float p, float q, float c) {
  return std::max(
      static_cast<double>(p) * static_cast<double>(q) - static_cast<double>(c) * static_cast<double>(c), 0.0);
}

/// sqrt(pq - c^2), in double: in float the determinant itself may leave the range.
inline double root_determinant(float p, float q, float c) { return std::sqrt(determinant(p, q, c)); }

/// sqrt(pq - c^2) over the whole range of double: where the products would leave it, p, q and c are scaled by powers of
/// two, which changes no digit.
inline double root_determinant(double p, double q, double c) {
  const double product = p * q;
  if ((product > 1e-280 && product < 1e280) || !(p > 0 && q > 0 && std::isfinite(p) && std::isfinite(q)))
    return std::sqrt(determinant(p, q, c));
  // p is divided by 4^left, q by 4^right and c by 2^(left + right), so that pq - c^2 is divided by 4^(left + right).
  const int left = std::ilogb(p) / 2, right = std::ilogb(q) / 2;
  const double scaled =
      determinant(std::scalbn(p, -2 * left), std::scalbn(q, -2 * right), std::scalbn(c, -left - right));
  return std::scalbn(std::sqrt(scaled), left + right);
}

/// sqrt(a + root^2), where root^2 may leave the range.
inline double root_of_sum(double a, double root) {
  return std::abs(root) < 1e150 ? std::sqrt(a + root * root) : std::hypot(std::sqrt(a), root);
}

/// Rounding errors of a covariance that is known to be that of multiples.
constexpr double perfect_tolerance = 32;

/// Rounding errors within which any covariance counts as perfect before a function that jumps: the angle, and with
/// it the value, has an infinite slope at perfect correlation, so that layer after layer would take the square
/// root of a rounding error.
constexpr double jump_tolerance = 8;

/// The covariance +-sqrt(pq) that c is but for `tolerance` rounding errors of its type, in double; nothing if it is
/// another.
template <typename Scalar>
std::optional<double> perfect_covariance(Scalar p, Scalar q, Scalar c, double tolerance = perfect_tolerance) {
  if (!(p > 0 && q > 0)) return std::nullopt;
  // Equal variances have no rounding error.
  const double product =
      p == q ? static_cast<double>(p) : std::sqrt(static_cast<double>(p)) * std::sqrt(static_cast<double>(q));
  const double rest = 1 - std::abs(static_cast<double>(c)) / product;
  if (!(std::abs(rest) <= tolerance * std::numeric_limits<Scalar>::epsilon())) return std::nullopt;
  return std::copysign(product, static_cast<double>(c));
}

}  // namespace widelimit::numerics
