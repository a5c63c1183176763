#pragma once

#include <numbers>
#include <span>
#include <vector>

#include "numerics/formula/arc.hpp"
#include "numerics/formula/row_formula.hpp"
#include "numerics/rows/homogeneous_row.hpp"

namespace widelimit::numerics::formula {

/// phi(x) = slope * x, and other stages that do not read variances: K' = factor K + constant, T' = factor T.
struct LinearFormula {
  double factor;
  std::size_t auxiliary = 1;  ///< Activations prepare the variance, which nothing reads.

  [[nodiscard]] std::size_t auxiliary_count() const { return auxiliary; }
  template <typename N>
  void prepare(const N& variance, std::vector<N>& numbers) const {
    if (auxiliary > 0) numbers.push_back(variance);
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
  static void prepare(const N& variance, std::vector<N>& numbers) {
    numbers.push_back(variance);
    numbers.push_back(choose(is_less(N(0), variance), N(1) / root(variance), N(-1)));
  }

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N weight = N(dual.weight), aligned = N(dual.aligned), opposed = N(dual.opposed);
    const N inverse = left[1] * right[1];
    const N weighted_root = weight * root(determinant(left[0], right[0], c));
    const N over_sine = angle_over_sine(fused(-magnitude(c), inverse, N(1)));
    // The weight times the sine, 1 without a variance.
    const N product = weighted_root * inverse;
    const N sine = choose(is_less(left[1], N(0)), weight, choose(is_less(right[1], N(0)), weight, product));
    const N derivative =
        choose(is_less(c, N(0)), fused(sine, over_sine, opposed), fused(-sine, over_sine, aligned));
    return {fused(derivative, c, weighted_root), derivative};
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
  static void prepare(const N& variance, std::vector<N>& numbers) {
    numbers.push_back(variance);
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
struct StepFormula {
  double tolerance;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static void prepare(const N& variance, std::vector<N>& numbers) {
    numbers.push_back(variance);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const JumpAngle<N> at(left[0], right[0], c, tolerance);
    return {N(std::numbers::inv_pi / 2) * angle(at.sine, -at.cosine), N(0)};
  }
};

/// phi(x) = x^degree for x > 0, degree >= 2: the recurrence of rectified.cpp.
struct RectifiedFormula {
  int degree;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  [[nodiscard]] double largest_variance(Precision precision) const {
    return precision == Precision::narrow ? (degree > 8 ? 1e2 : 1e4) : 1e9;
  }
  template <typename N>
  static void prepare(const N& variance, std::vector<N>& numbers) {
    numbers.push_back(variance);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N det = determinant(left[0], right[0], c), sine = root(det);
    const N over_two_pi = N(std::numbers::inv_pi / 2), quarter = N(0.25);
    N lower =
        choose(both(is_less(N(0), left[0]), is_less(N(0), right[0])), over_two_pi * angle(sine, -c), quarter);
    N moment = fused(c, lower, over_two_pi * sine);
    for (int n = 1; n < degree; ++n) {
      const N next = fused(N(2 * n + 1) * c, moment, N(n) * (N(n) * (det * lower)));
      lower = moment;
      moment = next;
    }
    return {moment, N(degree * degree) * lower};
  }
};

/// K' = K r r', T' = T r r' with r = 1 / sqrt(variance + epsilon): norms over channels.
struct NormFormula {
  double epsilon;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  void prepare(const N& variance, std::vector<N>& numbers) const {
    const N shifted = variance + N(epsilon);
    numbers.push_back(choose(is_less(N(0), shifted), N(1) / root(shifted), N(0)));
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
  static void prepare(const N&, std::vector<N>&) {}
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N>, std::span<const N>, const N& c) const {
    return {c, N(1)};
  }
};

}  // namespace widelimit::numerics::formula
