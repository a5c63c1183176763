// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_ARC) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_ARC

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <concepts>
#include <cstddef>

#include "numerics/formula/angle_series.hpp"
#include "widelimit/numerics/formula/jet.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

/// What the duals of erf, GELU and of ReLU-like functions share: pq - c^2, its root, angles, and what Euler's relation
/// says of homogeneous functions. Jets have overloads where the slopes of a formula would be 0 / 0, or differences of
/// large numbers, at perfect correlation and next to it. All are inlined: rows call them with vectors.
namespace widelimit::numerics::formula {
#endif

/// Coefficients of a polynomial, lowest order first, for either precision: what float needs is shorter.
template <std::size_t narrow_size, std::size_t wide_size>
struct Coefficients {
  std::array<float, narrow_size> narrow;
  std::array<double, wide_size> wide;

  /// The polynomial at t, by Horner's scheme.
  template <typename N>
  [[nodiscard]] N at(const N& t) const {
    const bool is_narrow = epsilon_of(t) > 1e-10;
    const auto coefficient = [&](std::size_t k) {
      return is_narrow ? N(static_cast<double>(narrow[k])) : N(wide[k]);
    };
    std::size_t k = is_narrow ? narrow_size - 1 : wide_size - 1;
    N sum = coefficient(k);
    while (k-- > 0) sum = fused(sum, t, coefficient(k));
    return sum;
  }
};

/// pq - c^2, at least 0, whose plain difference cancels near correlation 1: with the rounding errors of the products
/// (Kahan). p == q == c gives exactly 0.
template <typename N>
[[gnu::always_inline]] inline N determinant(const N& p, const N& q, const N& c) {
  if constexpr (std::same_as<N, Symbol>)
    if (const auto part = kept_part("determinant", {&p, &q, &c})) return *part;
  const N square = c * c;
  return at_least(N(0), fused(p, q, -square) - fused(c, c, -square));
}
template <typename N, std::size_t count>
[[gnu::always_inline]] inline Jet<N, count> determinant(const Jet<N, count>& p, const Jet<N, count>& q,
                                                        const Jet<N, count>& c) {
  Jet<N, count> square(determinant(p.value, q.value, c.value));
  for (std::size_t k = 0; k < count; ++k)
    square.slopes[k] = (q.value * p.slopes[k] + p.value * q.slopes[k]) - (c.value + c.value) * c.slopes[k];
  return square;
}

/// sqrt(pq - c^2).
template <typename N>
[[gnu::always_inline]] inline N steep_root(const N& p, const N& q, const N& c) {
  if constexpr (std::same_as<N, Symbol>)
    if (const auto part = kept_part("steep_root", {&p, &q, &c})) return *part;
  return root(determinant(p, q, c));
}
/// The slope is infinite at perfect correlation, and counts as 0 within 32 rounding errors of it.
template <typename N, std::size_t count>
[[gnu::always_inline]] inline Jet<N, count> steep_root(const Jet<N, count>& p, const Jet<N, count>& q,
                                                       const Jet<N, count>& c) {
  const Jet<N, count> square = determinant(p, q, c);
  const N value = root(square.value), largest = root(p.value) * root(q.value);
  const auto imperfect = is_less(magnitude(c.value), largest * N(1 - 32 * epsilon_of(largest)));
  const N slope = choose(both(imperfect, is_less(N(0), value)), N(0.5) / value, N(0));
  return Jet<N, count>::chain(value, slope, square);
}

/// An angle between 0 and pi / 2 over its sine; `distance` is 1 less its cosine.
template <typename N>
[[gnu::always_inline]] inline N angle_over_sine(const N& distance) {
  static const Coefficients<9, 20> series{angle_series<float, 8>(), angle_series<double, 19>()};
  return series.at(distance);
}

/// The angle of the point (x, y), x >= 0, at most pi / 2 in size; `inverse` is that of the point's distance from 0. The
/// series is for rows and devices; a function of the machine is faster for one number.
template <typename N>
[[gnu::always_inline]] inline N acute_angle(const N& y, const N& x, const N& inverse) {
  if constexpr (std::same_as<N, Symbol>)
    if (const auto part = kept_part("acute_angle", {&y, &x, &inverse})) return *part;
  if constexpr (Real<N>)
    return angle(y, x);
  else
    return y * inverse * angle_over_sine(fused(-x, inverse, N(1)));
}
template <typename N, std::size_t count>
[[gnu::always_inline]] inline Jet<N, count> acute_angle(const Jet<N, count>& y, const Jet<N, count>& x,
                                                        const Jet<N, count>& inverse) {
  const N of_y = x.value * inverse.value * inverse.value, of_x = -(y.value * inverse.value * inverse.value);
  return Jet<N, count>::chain(acute_angle(y.value, x.value, inverse.value), of_y, y, of_x, x);
}

/// factor c + rest: the dual of a function that is homogeneous of degree one, with the factor of the NTK.
template <typename N>
[[gnu::always_inline]] inline N homogeneous_value(const N& factor, const N& c, const N& rest, const N& /*p*/,
                                                  const N& /*q*/) {
  return fused(factor, c, rest);
}
/// Its slope in c is `factor` (Price), and 2p that in p is what remains of the value without `factor` c (Euler).
template <typename N, std::size_t count>
[[gnu::always_inline]] inline Jet<N, count> homogeneous_value(const Jet<N, count>& factor,
                                                              const Jet<N, count>& c,
                                                              const Jet<N, count>& rest,
                                                              const Jet<N, count>& p,
                                                              const Jet<N, count>& q) {
  const N half = N(0.5) * rest.value;
  const auto over = [&](const N& variance) { return choose(is_less(N(0), variance), half / variance, N(0)); };
  const N value = fused(factor.value, c.value, rest.value), in_p = over(p.value), in_q = over(q.value);
  Jet<N, count> jet(value);
  for (std::size_t k = 0; k < count; ++k)
    jet.slopes[k] = factor.value * c.slopes[k] + (in_p * p.slopes[k] + in_q * q.slopes[k]);
  return jet;
}
}

#endif
