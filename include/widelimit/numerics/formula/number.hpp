#pragma once

#include <cmath>
#include <concepts>
#include <limits>

/// What formulas call on numbers, besides arithmetic. Symbol (symbol.hpp) and Jet (jet.hpp) have the same functions, so
/// that one template is read as a number, as a number with its slopes, or as text.
namespace widelimit::numerics::formula {

template <typename Scalar>
concept Real = std::floating_point<Scalar>;

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
N logarithm(N x) {
  return std::log(x);
}
template <Real N>
N sine(N x) {
  return std::sin(x);
}
template <Real N>
N cosine(N x) {
  return std::cos(x);
}
template <Real N>
N hyperbolic_sine(N x) {
  return std::sinh(x);
}
template <Real N>
N hyperbolic_tangent(N x) {
  return std::tanh(x);
}
template <Real N>
N error_function(N x) {
  return std::erf(x);
}
/// 1 - erf(x), without cancellation.
template <Real N>
N complementary_error_function(N x) {
  return std::erfc(x);
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
/// The larger of low and x, for an x that only rounding takes below; x where it is not a number.
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
  return static_cast<double>(std::numeric_limits<N>::epsilon());
}

}  // namespace widelimit::numerics::formula
