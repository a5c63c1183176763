// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_JET) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_JET

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <concepts>
#include <cstddef>
#include <numbers>
#include <type_traits>
#include <utility>

#include "widelimit/numerics/formula/number.hpp"

namespace widelimit::numerics::formula {
#endif

/// A number and its slopes in `count` directions, which arithmetic carries along (forward mode): a formula of jets
/// gives its value and its derivatives. N is float or double, or another number of formulas, such as Symbol and Jet
/// itself.
///
/// Where a function has no finite slope, as the root at 0, the slope counts as 0. A bound of at_least() is for rounding
/// errors, so that slopes pass through it. magnitude() has the slope 1 at 0, as is_less(x, 0) is false there.
template <typename N, std::size_t count>
struct Jet {
  N value;
  std::array<N, count> slopes;

  /// A constant.
  template <typename Number>
  requires std::constructible_from<N, Number>
  explicit(!std::is_arithmetic_v<Number>) Jet(const Number& number)
      : Jet(static_cast<N>(number), N(0), std::make_index_sequence<count>()) {}
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

 private:
  template <std::size_t... directions>
  Jet(const N& number, const N& slope, std::index_sequence<directions...> /*all*/)
      : value(number), slopes{((void)directions, slope)...} {}
};

template <typename N, std::size_t count>
Jet<N, count> operator+(const Jet<N, count>& a, const Jet<N, count>& b) {
  Jet<N, count> sum = a;
  sum.value = a.value + b.value;
  for (std::size_t k = 0; k < count; ++k) sum.slopes[k] = a.slopes[k] + b.slopes[k];
  return sum;
}
template <typename N, std::size_t count>
Jet<N, count> operator-(const Jet<N, count>& a, const Jet<N, count>& b) {
  Jet<N, count> difference = a;
  difference.value = a.value - b.value;
  for (std::size_t k = 0; k < count; ++k) difference.slopes[k] = a.slopes[k] - b.slopes[k];
  return difference;
}
template <typename N, std::size_t count>
Jet<N, count> operator-(const Jet<N, count>& a) {
  return Jet<N, count>::chain(-a.value, N(-1), a);
}
template <typename N, std::size_t count>
Jet<N, count> operator*(const Jet<N, count>& a, const Jet<N, count>& b) {
  return Jet<N, count>::chain(a.value * b.value, b.value, a, a.value, b);
}
/// Factors are taken one after the other, because powers of b may leave the range.
template <typename N, std::size_t count>
Jet<N, count> operator/(const Jet<N, count>& a, const Jet<N, count>& b) {
  const N inverse = N(1) / b.value, quotient = a.value * inverse;
  Jet<N, count> jet = a;
  jet.value = quotient;
  for (std::size_t k = 0; k < count; ++k) jet.slopes[k] = (a.slopes[k] - quotient * b.slopes[k]) * inverse;
  return jet;
}

template <typename N, std::size_t count>
Jet<N, count> root(const Jet<N, count>& x) {
  const N value = root(x.value);
  return Jet<N, count>::chain(value, choose(is_less(N(0), value), N(0.5) / value, N(0)), x);
}
template <typename N, std::size_t count>
Jet<N, count> exponential(const Jet<N, count>& x) {
  const N value = exponential(x.value);
  return Jet<N, count>::chain(value, value, x);
}
template <typename N, std::size_t count>
Jet<N, count> exponential_less_one(const Jet<N, count>& x) {
  const N value = exponential_less_one(x.value);
  return Jet<N, count>::chain(value, value + N(1), x);
}
template <typename N, std::size_t count>
Jet<N, count> logarithm(const Jet<N, count>& x) {
  return Jet<N, count>::chain(logarithm(x.value), N(1) / x.value, x);
}
template <typename N, std::size_t count>
Jet<N, count> sine(const Jet<N, count>& x) {
  return Jet<N, count>::chain(sine(x.value), cosine(x.value), x);
}
template <typename N, std::size_t count>
Jet<N, count> cosine(const Jet<N, count>& x) {
  return Jet<N, count>::chain(cosine(x.value), -sine(x.value), x);
}
template <typename N, std::size_t count>
Jet<N, count> hyperbolic_sine(const Jet<N, count>& x) {
  const N value = hyperbolic_sine(x.value);
  return Jet<N, count>::chain(value, root(fused(value, value, N(1))), x);
}
template <typename N, std::size_t count>
Jet<N, count> hyperbolic_tangent(const Jet<N, count>& x) {
  const N value = hyperbolic_tangent(x.value);
  return Jet<N, count>::chain(value, (N(1) - value) * (N(1) + value), x);
}
template <typename N, std::size_t count>
Jet<N, count> error_function(const Jet<N, count>& x) {
  const N slope = N(2 * std::numbers::inv_sqrtpi) * exponential(-(x.value * x.value));
  return Jet<N, count>::chain(error_function(x.value), slope, x);
}
template <typename N, std::size_t count>
Jet<N, count> complementary_error_function(const Jet<N, count>& x) {
  const N slope = N(-2 * std::numbers::inv_sqrtpi) * exponential(-(x.value * x.value));
  return Jet<N, count>::chain(complementary_error_function(x.value), slope, x);
}
template <typename N, std::size_t count>
Jet<N, count> angle(const Jet<N, count>& y, const Jet<N, count>& x) {
  const N square = x.value * x.value + y.value * y.value;
  const N inverse = choose(is_less(N(0), square), N(1) / square, N(0));
  return Jet<N, count>::chain(angle(y.value, x.value), x.value * inverse, y, -(y.value * inverse), x);
}
template <typename N, std::size_t count>
Jet<N, count> magnitude(const Jet<N, count>& x) {
  return Jet<N, count>::chain(magnitude(x.value), choose(is_less(x.value, N(0)), N(-1), N(1)), x);
}
template <typename N, std::size_t count>
Jet<N, count> fused(const Jet<N, count>& a, const Jet<N, count>& b, const Jet<N, count>& c) {
  return a * b + c;
}
template <typename N, std::size_t count>
Jet<N, count> at_least(const Jet<N, count>& low, const Jet<N, count>& x) {
  return Jet<N, count>::chain(at_least(low.value, x.value), N(1), x);
}
template <typename N, std::size_t count>
auto is_less(const Jet<N, count>& a, const Jet<N, count>& b) -> decltype(is_less(a.value, b.value)) {
  return is_less(a.value, b.value);
}
template <typename Condition, typename N, std::size_t count>
Jet<N, count> choose(const Condition& condition, const Jet<N, count>& yes, const Jet<N, count>& no) {
  Jet<N, count> jet = yes;
  jet.value = choose(condition, yes.value, no.value);
  for (std::size_t k = 0; k < count; ++k) jet.slopes[k] = choose(condition, yes.slopes[k], no.slopes[k]);
  return jet;
}
template <typename N, std::size_t count>
double epsilon_of(const Jet<N, count>& x) {
  return epsilon_of(x.value);
}
}

#endif
