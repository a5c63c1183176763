#include <cmath>
#include <numbers>

#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/normal_density.hpp"
#include "numerics/tilted_map.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// With P the normal distribution function, n its density, and r^2 = det(I + Sigma) = 1 + p + q + (pq - c^2):
///   E[P(u) P(v)] = 1/4 + arcsin(c / sqrt((1+p)(1+q))) / (2 pi) =: s,   arcsin(...) = atan2(c, r)
///   E[n(u) n(v)] = 1 / (2 pi r),   E[n'(u) P(v)] = -c / (2 pi r (1+p)),   E[u v n(u) n(v)] = c / (2 pi r^3).
/// Stein's lemma twice on E[u v P(u) P(v)], then (P + u n)(P + v n) for the derivative, give
///   value      = c s + [pq - c^2 + c^2 (1/(1+p) + 1/(1+q))] / (2 pi r)
///   derivative = s + c [1/(1+p) + 1/(1+q) + 1/r^2] / (2 pi r),
/// without a difference of large numbers for c >= 0.
struct Gelu {
  [[nodiscard]] static double distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
  [[nodiscard]] static double value(double x) { return x * distribution(x); }
  [[nodiscard]] static double derivative(double x) { return distribution(x) + x * normal_density(x); }

  template <typename Scalar>
  [[nodiscard]] static Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double root_det) {
    const double wide_root = root_of_sum(1 + (static_cast<double>(p) + static_cast<double>(q)), root_det);
    const auto root = static_cast<Scalar>(wide_root);
    constexpr Scalar over_two_pi = std::numbers::inv_pi_v<Scalar> / 2;
    // For c < 0 from the other end of the arc: s tends to 0 there, a difference would lose it.
    const Scalar both_positive = over_two_pi * std::atan2(root, std::abs(c));
    const Scalar s = c < 0 ? both_positive : Scalar{0.5} - both_positive;
    const Scalar shrinkage = 1 / (1 + p) + 1 / (1 + q);
    // Quotients first: squares of large variances leave the range.
    const auto det_over_root = static_cast<Scalar>(root_det * (root_det / wide_root));
    const Scalar c_over_root = c / root;
    return {c * s + over_two_pi * (det_over_root + c_over_root * (c * shrinkage)),
            s + over_two_pi * c_over_root * (shrinkage + (1 / root) / root)};
  }

  [[nodiscard]] static formula::GeluFormula text() { return {{dual_numbers}}; }

  static constexpr TiltedDual dual_numbers{.shift = 1, .weight = 1};
};

}  // namespace

ActivationPtr gelu() { return make_tilted_form(Gelu{}); }

}  // namespace widelimit::numerics
