#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

/// Duals by plain formulas in long double, for the accuracy and the range of the library's.
namespace widelimit::testing {

struct WidePair {
  long double p, q, c;
  long double det;  ///< pq - c^2
};

struct WideDual {
  long double value, derivative;
};

/// Without cancellation: the determinant is made of the doubles and of the rounding errors of their products, which
/// must not leave the range of double.
inline WidePair precise_pair(double p, double q, double c) {
  const double product = p * q, square = c * c;
  const long double errors = static_cast<long double>(std::fma(p, q, -product)) - std::fma(c, c, -square);
  return {p, q, c, std::max((static_cast<long double>(product) - square) + errors, 0.0L)};
}

/// weight arcsin(c / sqrt((shift + p)(shift + q))); erf(x) has the shift 1/2 and the weight 2 / pi.
inline WideDual wide_erf(const WidePair& at, long double shift = 0.5L,
                         long double weight = 2 / std::numbers::pi_v<long double>) {
  const long double root = std::sqrt(shift * shift + shift * (at.p + at.q) + at.det);
  return {weight * std::atan2(at.c, root), weight / root};
}

inline WideDual wide_gelu(const WidePair& at) {
  constexpr long double pi = std::numbers::pi_v<long double>;
  const long double root = std::sqrt(1 + at.p + at.q + at.det), shrinkage = 1 / (1 + at.p) + 1 / (1 + at.q);
  const long double angle = std::atan2(root, std::abs(at.c)) / (2 * pi), s = at.c < 0 ? angle : 0.5L - angle;
  return {at.c * s + (at.det + at.c * at.c * shrinkage) / (2 * pi * root),
          s + at.c * (shrinkage + 1 / (root * root)) / (2 * pi * root)};
}

/// exp(-rate x^2)
inline WideDual wide_gaussian(const WidePair& at, long double rate = 1) {
  const long double square = 1 + 2 * rate * (at.p + at.q) + 4 * rate * rate * at.det;
  return {1 / std::sqrt(square), 4 * rate * rate * at.c / (square * std::sqrt(square))};
}

/// sin(frequency x + phase): cos(phase)^2 exp(-(p + q) / 2) sinh(c) + sin(phase)^2 exp(-(p + q) / 2) cosh(c) for a
/// frequency of 1, without overflow.
inline WideDual wide_sin(const WidePair& at, long double frequency = 1, long double phase = 0) {
  const long double square = frequency * frequency, c = square * at.c;
  const long double near = std::exp(-square * ((at.p - at.c) + (at.q - at.c)) / 2);
  const long double far = std::exp(-square * ((at.p + at.c) + (at.q + at.c)) / 2);
  const long double even = (near + far) / 2;
  const long double odd =
      std::abs(c) < 1 ? std::exp(-square * (at.p + at.q) / 2) * std::sinh(c) : (near - far) / 2;
  const long double sine = std::sin(phase), cosine = std::cos(phase);
  return {cosine * cosine * odd + sine * sine * even, square * (cosine * cosine * even + sine * sine * odd)};
}

inline WideDual wide_rbf(const WidePair& at, long double gamma = 1) {
  const long double value = std::exp(-gamma * std::max((at.p - at.c) + (at.q - at.c), 0.0L));
  return {value, 2 * gamma * value};
}

/// exp(rate x)
inline WideDual wide_exponential(const WidePair& at, long double rate = 1) {
  const long double value = std::exp(rate * rate / 2 * (at.p + at.q + 2 * at.c));
  return {value, rate * rate * value};
}

}  // namespace widelimit::testing
