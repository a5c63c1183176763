// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_RECTIFIED) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_RECTIFIED

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

#include "numerics/formula/arc.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// The correlation c / sqrt(pq), with the sine of its angle, whose square is (pq - c^2) / pq: 1 less the square of the
/// correlation would lose it. Correlations within `jump_tolerance` rounding errors of 1 and -1 count as these, whose
/// sine is exactly 0. A variance of 0 counts as uncorrelated.
template <typename N>
struct JumpAngle {
  N cosine;
  N sine;

  JumpAngle(const N& p, const N& q, const N& c, double tolerance)
      : JumpAngle(both(is_less(N(0), p), is_less(N(0), q)), root(p) * root(q), root(determinant(p, q, c)), c,
                  tolerance) {}

 private:
  template <typename Condition>
  JumpAngle(const Condition& varies, const N& product, const N& opposite, const N& c, double tolerance)
      : cosine{choose(varies, c / product, N(0))}, sine{choose(varies, opposite / product, N(1))} {
    const N distance = N(1) - magnitude(cosine);
    sine = choose(is_less(distance, N(tolerance * epsilon_of(cosine))), N(0), sine);
  }
};

/// What functions that jump at 0 share: their auxiliary number is the variance.
struct JumpFormula {
  double tolerance;  ///< Rounding errors within which a correlation counts as perfect.

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e18 : 1e150;
  }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
};

/// phi(x) = sign(x): (2/pi) arcsin(c / sqrt(pq)), from whichever end of the arc is nearer: exact at perfect correlation
/// and of full relative accuracy near zero.
struct SignFormula : JumpFormula {
  /// The slope of the value in c is this over sqrt(pq - c^2).
  static constexpr double jump = 2 * std::numbers::inv_pi;

  template <typename N>
  [[nodiscard]] static N value(const N& x) {
    return choose(is_less(N(0), x), N(1), choose(is_less(x, N(0)), N(-1), N(0)));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const JumpAngle<N> at(left[0], right[0], c, tolerance);
    const N two_over_pi = N(2 * std::numbers::inv_pi);
    const N near_zero = two_over_pi * angle(at.cosine, at.sine);
    const N from_end = N(1) - two_over_pi * angle(at.sine, magnitude(at.cosine));
    const N near_end = choose(is_less(at.cosine, N(0)), -from_end, from_end);
    return {choose(is_less(at.sine, magnitude(at.cosine)), near_end, near_zero), N(0)};
  }
};

/// phi(x) = 1 for x > 0, 1/2 at 0: the probability (pi - theta) / (2 pi) that both variables are positive.
struct StepFormula : JumpFormula {
  static constexpr double jump = std::numbers::inv_pi / 2;

  template <typename N>
  [[nodiscard]] static N value(const N& x) {
    return choose(is_less(N(0), x), N(1), choose(is_less(x, N(0)), N(0), N(0.5)));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const JumpAngle<N> at(left[0], right[0], c, tolerance);
    return {N(std::numbers::inv_pi / 2) * angle(at.sine, -at.cosine), N(0)};
  }
};

/// phi(x) = x^degree for x > 0, of a degree of at least 2. M_n = E[u_+^n v_+^n] = (pq)^(n/2) sin(theta)^(2n+1) g^(n)(x)
/// / (2 pi) with x = cos(theta), g(x) = (pi - arccos x) / sqrt(1 - x^2) (Cho and Saul 2009, equation 4).
/// Differentiating (1 - x^2) g' = x g + 1 gives the recurrence
///   M_{n+1} = (2n+1) c M_n + n^2 (pq - c^2) M_{n-1},
/// whose terms are all positive for c >= 0; Price's theorem reads dM_n/dc = n^2 M_{n-1}.
struct RectifiedFormula {
  int degree;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  [[nodiscard]] double largest_variance(Precision precision) const {
    return precision == Precision::narrow ? (degree > 8 ? 1e2 : 1e4) : std::pow(10, 290.0 / degree);
  }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    N power = x;
    for (int k = 1; k < degree; ++k) power = power * x;
    return choose(is_less(N(0), x), power, N(0));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    return with_determinant(left, right, c, determinant(left[0], right[0], c));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> with_determinant(std::span<const N> left, std::span<const N> right, const N& c,
                                           const N& det) const {
    const N over_two_pi = N(std::numbers::inv_pi / 2), quarter = N(0.25), sine = root(det);
    const auto known = both(is_less(N(0), left[0]), is_less(N(0), right[0]));
    // M_0 = (pi - theta) / (2 pi).
    N lower = choose(known, over_two_pi * angle(sine, -c), quarter);
    N moment = homogeneous_value(lower, c, over_two_pi * sine, left[0], right[0]);
    for (int n = 1; n < degree; ++n) {
      const N next = fused(N(2 * n + 1) * c, moment, N(n) * (N(n) * (det * lower)));
      lower = moment;
      moment = next;
    }
    // Near opposite variables the terms cancel, and rounding may leave less than 0, which no moment is.
    moment = at_least(N(0), moment);
    lower = at_least(N(0), lower);
    // Without a variance both are 0, and their slopes count as 0 like them.
    return {choose(known, moment, N(0)), choose(known, N(degree * degree) * lower, N(0))};
  }
};
}

#endif
