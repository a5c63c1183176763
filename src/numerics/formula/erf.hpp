// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_ERF) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_ERF

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <numbers>
#include <span>

#include "numerics/formula/tilted.hpp"

namespace widelimit::numerics::formula {
#endif

/// phi(x) = a erf(b x) + d. The dual of erf, (2/pi) arcsin(2c / sqrt((1 + 2p)(1 + 2q))), with s = 1 / (2 b^2) is an
/// arctangent of c and R, neither of which cancels at large variances. erf is odd, so that d adds d^2 to the value and
/// nothing else. Source: Williams, "Computing with infinite networks", NIPS 1996, section 3.
struct ErfFormula : TiltedFormula {
  double amplitude, rate, offset;

  ErfFormula(double of_amplitude, double of_rate, double of_offset)
      : TiltedFormula{1 / (2 * of_rate * of_rate)},
        amplitude{of_amplitude},
        rate{of_rate},
        offset{of_offset} {}

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return fused(N(amplitude), error_function(N(rate) * x), N(offset));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    return with_determinant(left, right, c, determinant(left[0], right[0], c));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> with_determinant(std::span<const N> left, std::span<const N> right, const N& c,
                                           const N& det) const {
    const N weight = N(2 * std::numbers::inv_pi * amplitude * amplitude);
    const N tilted = tilted_root(left[0], right[0], det);
    return {fused(weight, acute_angle(c, tilted, left[1] * right[1]), N(offset * offset)), weight / tilted};
  }
  /// dR/dp = (s + q) / 2R and dR/dc = -c / R. Quotients are taken one after the other, because powers of R leave the
  /// range.
  template <typename N>
  [[nodiscard]] MappedSlopes<N> slopes(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N &p = left[0], &q = right[0];
    const N weight = N(2 * std::numbers::inv_pi * amplitude * amplitude);
    const N tilted = tilted_root(p, q, determinant(p, q, c)), over_root = N(1) / tilted;
    const N value = fused(weight, acute_angle(c, tilted, left[1] * right[1]), N(offset * offset));
    const Mapped<N> mapped{value, weight * over_root};
    const N half_slope = N(-0.5) * mapped.factor;
    const auto in_variance = [&](const N& inverse, const N& other) {
      return Mapped<N>{half_slope * ((c * inverse) * inverse),
                       half_slope * (((N(shift) + other) * over_root) * over_root)};
    };
    return {mapped,
            in_variance(left[1], q),
            in_variance(right[1], p),
            {mapped.factor, mapped.factor * ((c * over_root) * over_root)}};
  }
};
}

#endif
