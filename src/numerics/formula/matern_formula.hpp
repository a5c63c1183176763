#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>

#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {

/// The Matern function of the smoothness order + 1/2 at s = sqrt(square): exp(-s) times 1, 1 + s, or 1 + s + s^2 / 3.
/// Squares beyond a million, whose exponentials are 0, count as that: they may be infinite.
template <typename N>
N matern_function(int order, const N& square) {
  if constexpr (std::same_as<N, Symbol>) {
    const Symbol smoothness = order + 0.5;
    if (const auto part = kept_part("matern_function", {&smoothness, &square})) return *part;
  }
  const N within = choose(is_less(square, N(1e6)), square, N(1e6)), s = root(within);
  const N decay = exponential(-s);
  if (order == 0) return decay;
  if (order == 1) return fused(s, decay, decay);
  return fused(N(1.0 / 3), within, N(1) + s) * decay;
}

/// Its slope in the square is the function of the order below over -2 (2 order - 1), without a singular root. That of
/// order 0 is infinite at 0 and counts as 0.
template <typename N, std::size_t count>
Jet<N, count> matern_function(int order, const Jet<N, count>& square) {
  const N value = matern_function(order, square.value);
  if (order > 0)
    return Jet<N, count>::chain(value, N(-0.5 / (2 * order - 1)) * matern_function(order - 1, square.value),
                                square);
  const auto apart = is_less(N(0), square.value);
  const N s = root(choose(apart, square.value, N(1)));
  return Jet<N, count>::chain(value, choose(apart, N(-0.5) * value / s, N(0)), square);
}

/// K' = k(sqrt(scale (p + q - 2c))), T' = 0.
struct MaternFormula {
  int order;     ///< The smoothness less 1/2.
  double scale;  ///< 2 smoothness / length^2

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N &p = left[0], &q = right[0];
    const N distance = at_least(N(0), (p - c) + (q - c));
    return {matern_function(order, N(scale) * without_rounding(distance, p, q)), N(0)};
  }

 private:
  /// The cusp of order 0 takes the root of a rounding error; smooth functions take it as it is.
  template <typename N>
  [[nodiscard]] N without_rounding(const N& distance, const N& p, const N& q) const {
    if (order > 0) return distance;
    return choose(is_less(N(2 * epsilon_of(distance)) * (p + q), distance), distance, N(0));
  }
};

}  // namespace widelimit::numerics::formula
