#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <numbers>
#include <type_traits>

#include "widelimit/numerics/formula/number.hpp"

namespace widelimit::numerics::formula {

/// A number and its slopes in `count` directions, which arithmetic carries along (forward mode): a formula of jets gives
/// its value and its derivatives. N is float or double, or another number of formulas, such as Symbol and Jet itself.
///
/// Where a function has no finite slope, as the root at 0, the slope counts as 0. A bound of at_least() is for rounding
/// errors, so that slopes pass through it. magnitude() has the slope 1 at 0, as is_less(x, 0) is false there.
template <typename N, std::size_t count>
struct Jet {
  N value;
  std::array<N, count> slopes;

  Jet() : Jet(0.0) {}
  /// A constant.
  template <typename Number>
  requires std::constructible_from<N, Number>
  explicit(!std::is_arithmetic_v<Number>) Jet(const Number& number) : value(static_cast<N>(number)) {
    slopes.fill(N(0));
  }
  /// The number itself, as the variable of a direction.
  static Jet variable(const N& number, std::size_t direction) {
    Jet jet(number);
    jet.slopes[direction] = N(1);
    return jet;
  }
  /// f(x), with the slope of f there.
  static Jet chain(const N& value, const N& slope, const Jet& x) {
    Jet jet = x;
    jet.value = value;
    for (N& each : jet.slopes) each = slope * each;
    return jet;
  }
  /// f(x, y), with its slopes in both.
  static Jet chain(const N& value, const N& slope_x, const Jet& x, const N& slope_y, const Jet& y) {
    Jet jet = x;
    jet.value = value;
    for (std::size_t k = 0; k < count; ++k) jet.slopes[k] = slope_x * x.slopes[k] + slope_y * y.slopes[k];
    return jet;
  }

  friend Jet operator+(const Jet& a, const Jet& b) {
    Jet sum = a;
    sum.value = a.value + b.value;
    for (std::size_t k = 0; k < count; ++k) sum.slopes[k] = a.slopes[k] + b.slopes[k];
    return sum;
  }
  friend Jet operator-(const Jet& a, const Jet& b) {
    Jet difference = a;
    difference.value = a.value - b.value;
    for (std::size_t k = 0; k < count; ++k) difference.slopes[k] = a.slopes[k] - b.slopes[k];
    return difference;
  }
  friend Jet operator-(const Jet& a) { return chain(-a.value, N(-1), a); }
  friend Jet operator*(const Jet& a, const Jet& b) {
    return chain(a.value * b.value, b.value, a, a.value, b);
  }
  /// Quotients are taken one after the other, because powers of b may leave the range.
  friend Jet operator/(const Jet& a, const Jet& b) {
    const N inverse = N(1) / b.value, quotient = a.value / b.value;
    Jet jet = a;
    jet.value = quotient;
    for (std::size_t k = 0; k < count; ++k) jet.slopes[k] = (a.slopes[k] - quotient * b.slopes[k]) * inverse;
    return jet;
  }

  friend Jet root(const Jet& x) {
    const N value = root(x.value);
    return chain(value, choose(is_less(N(0), value), N(0.5) / value, N(0)), x);
  }
  friend Jet exponential(const Jet& x) {
    const N value = exponential(x.value);
    return chain(value, value, x);
  }
  friend Jet exponential_less_one(const Jet& x) {
    const N value = exponential_less_one(x.value);
    return chain(value, value + N(1), x);
  }
  friend Jet logarithm(const Jet& x) { return chain(logarithm(x.value), N(1) / x.value, x); }
  friend Jet sine(const Jet& x) { return chain(sine(x.value), cosine(x.value), x); }
  friend Jet cosine(const Jet& x) { return chain(cosine(x.value), -sine(x.value), x); }
  friend Jet hyperbolic_sine(const Jet& x) {
    const N value = hyperbolic_sine(x.value);
    return chain(value, root(fused(value, value, N(1))), x);
  }
  friend Jet hyperbolic_tangent(const Jet& x) {
    const N value = hyperbolic_tangent(x.value);
    return chain(value, (N(1) - value) * (N(1) + value), x);
  }
  friend Jet error_function(const Jet& x) {
    const N slope = N(2 * std::numbers::inv_sqrtpi) * exponential(-(x.value * x.value));
    return chain(error_function(x.value), slope, x);
  }
  friend Jet angle(const Jet& y, const Jet& x) {
    const N square = x.value * x.value + y.value * y.value;
    const N inverse = choose(is_less(N(0), square), N(1) / square, N(0));
    return chain(angle(y.value, x.value), x.value * inverse, y, -(y.value * inverse), x);
  }
  friend Jet magnitude(const Jet& x) {
    return chain(magnitude(x.value), choose(is_less(x.value, N(0)), N(-1), N(1)), x);
  }
  friend Jet fused(const Jet& a, const Jet& b, const Jet& c) { return a * b + c; }
  friend Jet at_least(const Jet& low, const Jet& x) { return chain(at_least(low.value, x.value), N(1), x); }
  friend auto is_less(const Jet& a, const Jet& b) { return is_less(a.value, b.value); }
  template <typename Condition>
  friend Jet choose(const Condition& condition, const Jet& yes, const Jet& no) {
    Jet jet = yes;
    jet.value = choose(condition, yes.value, no.value);
    for (std::size_t k = 0; k < count; ++k) jet.slopes[k] = choose(condition, yes.slopes[k], no.slopes[k]);
    return jet;
  }
  friend double epsilon_of(const Jet& x) { return epsilon_of(x.value); }
};

}  // namespace widelimit::numerics::formula
