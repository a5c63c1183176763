// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_HOMOGENEOUS) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_HOMOGENEOUS

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "numerics/formula/arc.hpp"
#include "numerics/rows/homogeneous_row.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// phi(x) = slope * x, and other stages that do not read variances: K' = factor K + constant, T' = factor T.
struct LinearFormula {
  double factor;

  /// Activations prepare the variance, which nothing reads.
  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N>, std::span<const N>, const N& c) const {
    return {N(factor) * c, N(factor)};
  }
};

/// Positively homogeneous functions: the formula of rows/homogeneous_row.cpp. Auxiliary numbers: the variance, and its
/// inverse root, -1 without a variance, which counts as uncorrelated.
struct HomogeneousFormula {
  HomogeneousDual dual;

  [[nodiscard]] static std::size_t auxiliary_count() { return 2; }
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e15 : 1e140;
  }

  template <typename N>
  static std::array<N, 2> prepare(const N& variance) {
    return {variance, choose(is_less(N(0), variance), N(1) / root(variance), N(-1))};
  }

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N weight = N(dual.weight), right_angle = N(std::numbers::pi / 2);
    const N root = steep_root(left[0], right[0], c);
    const N between = acute_angle(root, magnitude(c), left[1] * right[1]);
    const N known = choose(is_less(right[1], N(0)), right_angle, between);
    const N angle = choose(is_less(left[1], N(0)), right_angle, known);
    const N derivative = choose(is_less(c, N(0)), fused(weight, angle, N(dual.opposed)),
                                fused(-weight, angle, N(dual.aligned)));
    return {homogeneous_value(derivative, c, weight * root, left[0], right[0]), derivative};
  }
};

/// The correlation c / sqrt(pq), with the sine of its angle. Correlations within `jump_tolerance` rounding errors of 1
/// and -1 count as these, whose sine is exactly 0. A variance of 0 counts as uncorrelated.
template <typename N>
struct JumpAngle {
  N cosine;
  N sine;

  JumpAngle(const N& p, const N& q, const N& c, double tolerance)
      : cosine{choose(both(is_less(N(0), p), is_less(N(0), q)), c / (root(p) * root(q)), N(0))},
        sine{sine_of(cosine, tolerance)} {}

 private:
  static N sine_of(const N& cosine, double tolerance) {
    const N distance = N(1) - magnitude(cosine);
    const N square = at_least(N(0), distance * (N(1) + magnitude(cosine)));
    return choose(is_less(distance, N(tolerance * epsilon_of(cosine))), N(0), root(square));
  }
};

/// phi(x) = sign(x): (2/pi) arcsin(c / sqrt(pq)), from whichever end of the arc is nearer.
struct SignFormula {
  double tolerance;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
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

/// phi(x) = x^degree for x > 0: the recurrence of rectified.cpp. A degree of 0 is the step, 1/2 at 0: the probability
/// (pi - theta) / (2 pi) that both variables are positive.
struct RectifiedFormula {
  int degree;
  double jump_tolerance;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  [[nodiscard]] double largest_variance(Precision precision) const {
    if (precision == Precision::narrow) return degree == 0 ? 1e30 : degree > 8 ? 1e2 : 1e4;
    return std::pow(10, 290.0 / std::max(degree, 1));
  }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N over_two_pi = N(std::numbers::inv_pi / 2), quarter = N(0.25);
    if (degree == 0) {
      const JumpAngle<N> at(left[0], right[0], c, jump_tolerance);
      return {over_two_pi * angle(at.sine, -at.cosine), N(0)};
    }
    const N det = determinant(left[0], right[0], c), sine = root(det);
    const auto known = both(is_less(N(0), left[0]), is_less(N(0), right[0]));
    N lower = choose(known, over_two_pi * angle(sine, -c), quarter);
    N moment = homogeneous_value(lower, c, over_two_pi * sine, left[0], right[0]);
    for (int n = 1; n < degree; ++n) {
      const N next = fused(N(2 * n + 1) * c, moment, N(n) * (N(n) * (det * lower)));
      lower = moment;
      moment = next;
    }
    if (degree == 1) return {moment, lower};
    // Rounding may leave less than 0, which no moment is.
    moment = at_least(N(0), moment);
    lower = at_least(N(0), lower);
    // Without a variance both are 0, and their slopes count as 0 like them.
    return {choose(known, moment, N(0)), choose(known, N(degree * degree) * lower, N(0))};
  }
};

/// K' = K r r', T' = T r r' with r = 1 / sqrt(variance + epsilon): norms over channels.
struct NormFormula {
  double epsilon;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  std::array<N, 1> prepare(const N& variance) const {
    const N shifted = variance + N(epsilon);
    return {choose(is_less(N(0), shifted), N(1) / root(shifted), N(0))};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N factor = left[0] * right[0];
    return {factor * c, factor};
  }
};

/// The same with factors that do not come from the position's own variance: masks.
struct ScaleFormula {
  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N factor = left[0] * right[0];
    return {factor * c, factor};
  }
};

/// Dropout: entries of a position with itself are divided by `keep`.
struct DropoutFormula {
  double keep;

  [[nodiscard]] static std::size_t auxiliary_count() { return 0; }
  [[nodiscard]] double self_factor() const { return 1 / keep; }
  template <typename N>
  static std::array<N, 0> prepare(const N&) {
    return {};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N>, std::span<const N>, const N& c) const {
    return {c, N(1)};
  }
};
}

#endif
