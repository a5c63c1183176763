#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

/// What formulas call on numbers, besides arithmetic. Symbol (symbol.hpp) has the same functions, so that one template
/// is read as a number or as text.
namespace widelimit::numerics::formula {

template <typename Scalar>
concept Real = std::is_floating_point_v<Scalar>;

template <Real N>
N root(N x) {
  return std::sqrt(x);
}
template <Real N>
N exponential(N x) {
  return std::exp(x);
}
/// e^x - 1
template <Real N>
N exponential_less_one(N x) {
  return std::expm1(x);
}
template <Real N>
N hyperbolic_sine(N x) {
  return std::sinh(x);
}
template <Real N>
N hyperbolic_cosine(N x) {
  return std::cosh(x);
}
/// The angle of the point (x, y).
template <Real N>
N angle(N y, N x) {
  return std::atan2(y, x);
}
template <Real N>
N magnitude(N x) {
  return std::abs(x);
}
/// a b + c, rounded once.
template <Real N>
N fused(N a, N b, N c) {
  return std::fma(a, b, c);
}
/// The larger of low and x; x where it is not a number.
template <Real N>
N at_least(N low, N x) {
  return x < low ? low : x;
}
template <Real N>
bool is_less(N a, N b) {
  return a < b;
}
template <Real N>
N choose(bool condition, N yes, N no) {
  return condition ? yes : no;
}
inline bool both(bool a, bool b) { return a && b; }

/// The distance from 1 to the next number of the type of x.
template <Real N>
double epsilon_of(N /*x*/) {
  return std::numeric_limits<N>::epsilon();
}

/// Coefficients of a polynomial, lowest order first, for either precision: what float needs is shorter.
struct Coefficients {
  const float* narrow;
  std::size_t narrow_count;
  const double* wide;
  std::size_t wide_count;

  template <std::size_t narrow_size, std::size_t wide_size>
  Coefficients(const std::array<float, narrow_size>& in_float, const std::array<double, wide_size>& in_double)
      : narrow{in_float.data()}, narrow_count{narrow_size}, wide{in_double.data()}, wide_count{wide_size} {}
};

/// A polynomial at t by Horner's scheme.
inline float polynomial(const Coefficients& of, float t) {
  float sum = of.narrow[of.narrow_count - 1];
  for (std::size_t k = of.narrow_count - 1; k-- > 0;) sum = std::fma(sum, t, of.narrow[k]);
  return sum;
}
inline double polynomial(const Coefficients& of, double t) {
  double sum = of.wide[of.wide_count - 1];
  for (std::size_t k = of.wide_count - 1; k-- > 0;) sum = std::fma(sum, t, of.wide[k]);
  return sum;
}

}  // namespace widelimit::numerics::formula
