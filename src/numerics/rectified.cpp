#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "numerics/formula/homogeneous_formulas.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

constexpr int highest_rectified_degree = 32;

/// The value of a homogeneous function of degree 0 depends on the angle alone: its slope in c is weight /
/// sqrt(pq - c^2), and Euler's relation 2p f_p + c f_c = 0 gives the others. At perfect correlation, and beyond it by
/// rounding, the slope is infinite and counts as 0. By hand, because a formula of the angle is slower, and knows the
/// angle of nearly equal variables less well. Always inlined, as write_adjoint() is.
[[gnu::always_inline]] inline DualSlopes jump_slopes(const Dual<double>& dual, double weight, double p,
                                                     double q, double c, double root) {
  if (!(p > 0 && q > 0 && root > 0) || perfect_covariance(p, q, c, jump_tolerance))
    return {dual, {0, 0}, {0, 0}, 0, 0};
  const double slope = weight / root;
  return {dual, {-c / (2 * p) * slope, 0}, {-c / (2 * q) * slope, 0}, 0, slope};
}

struct Sign {
  [[nodiscard]] static double value(double x) { return static_cast<double>((x > 0) - (x < 0)); }
  [[nodiscard]] static double derivative(double) { return 0; }
  [[nodiscard]] static bool jumps() { return true; }
  [[nodiscard]] static formula::SignFormula text() { return {jump_tolerance}; }

  /// (2/pi) arcsin(c / sqrt(pq)), from whichever end of the arc is nearer: exact at perfect correlation and
  /// of full relative accuracy near zero.
  template <typename Scalar>
  [[nodiscard]] static Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double wide_root) {
    const auto root = static_cast<Scalar>(wide_root);
    constexpr Scalar two_over_pi = 2 * std::numbers::inv_pi_v<Scalar>;
    // Near 0 the arctangent is relatively exact; near +-1 its distance from the end of the arc is.
    if (std::abs(c) <= root || !(p > 0 && q > 0)) return {two_over_pi * std::atan2(c, root), 0};
    return {std::copysign(1 - two_over_pi * std::atan2(root, std::abs(c)), c), 0};
  }
  [[nodiscard]] static DualSlopes slopes(double p, double q, double c, double root) {
    return jump_slopes(dual(p, q, c, root), 2 * std::numbers::inv_pi, p, q, c, root);
  }
  [[nodiscard]] static SelfSlopes self_slopes(double p) { return {dual(p, p, p, 0), {0, 0}}; }
};

/// M_n = E[u_+^n v_+^n]. With x = cos(theta), M_n = (pq)^(n/2) sin(theta)^(2n+1) g^(n)(x) / (2 pi), g(x) =
/// (pi - arccos x) / sqrt(1 - x^2) (Cho & Saul 2009, eq. 4). Differentiating (1 - x^2) g' = x g + 1 gives the
/// recurrence below,
///   M_{n+1} = (2n+1) c M_n + n^2 (pq - c^2) M_{n-1},
/// whose terms are all positive for c >= 0; Price's theorem reads dM_n/dc = n^2 M_{n-1}.
class RectifiedMonomial {
 public:
  explicit RectifiedMonomial(int degree) : degree_{degree} {}

  [[nodiscard]] double value(double x) const {
    if (degree_ == 0 && x == 0) return 0.5;
    return x > 0 ? std::pow(x, degree_) : 0;
  }
  [[nodiscard]] double derivative(double x) const {
    if (degree_ == 0) return 0;
    if (degree_ == 1) return x < 0 ? 0 : 1;
    return x > 0 ? degree_ * std::pow(x, degree_ - 1) : 0;
  }

  [[nodiscard]] bool jumps() const { return degree_ == 0; }
  [[nodiscard]] formula::RectifiedFormula text() const { return {degree_, jump_tolerance}; }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double wide_root) const {
    const auto det = static_cast<Scalar>(wide_root * wide_root);
    const auto root = static_cast<Scalar>(wide_root);
    constexpr Scalar over_two_pi = std::numbers::inv_pi_v<Scalar> / 2;
    // M_0 = (pi - theta) / 2 pi is the probability that both variables are positive.
    Scalar lower = over_two_pi * orthant_angle(p, q, c, root);
    if (degree_ == 0) return {lower, 0};
    // M_1 = (sin(theta) sqrt(pq) + (pi - theta) c) / 2 pi, the dual of ReLU.
    Scalar moment = over_two_pi * root + c * lower;
    for (int n = 1; n < degree_; ++n) {
      const auto order = static_cast<Scalar>(n);
      const Scalar next = (2 * order + 1) * c * moment + order * order * det * lower;
      lower = moment;
      moment = next;
    }
    // Near opposite variables the terms cancel, and what rounding leaves may be below 0, which no moment is.
    return {std::max(moment, Scalar{0}), static_cast<Scalar>(degree_ * degree_) * std::max(lower, Scalar{0})};
  }

 protected:
  /// pi - theta.
  template <typename Scalar>
  [[nodiscard]] static Scalar orthant_angle(Scalar p, Scalar q, Scalar c, Scalar root) {
    if (!(p > 0 && q > 0)) return std::numbers::pi_v<Scalar> / 2;
    return std::atan2(root, -c);
  }

 private:
  int degree_;
};

/// 1 for x > 0, 1/2 at 0.
struct Step : RectifiedMonomial {
  Step() : RectifiedMonomial(0) {}

  [[nodiscard]] DualSlopes slopes(double p, double q, double c, double root) const {
    const double weight = std::numbers::inv_pi / 2;
    return jump_slopes({weight * orthant_angle(p, q, c, root), 0}, weight, p, q, c, root);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const { return {dual(p, p, p, 0.0), {0, 0}}; }
};

}  // namespace

ActivationPtr sign() { return make_closed_form(Sign{}); }

ActivationPtr rectified_monomial(int degree) {
  require_within("rectified_monomial", "degree", degree, 0, highest_rectified_degree);
  if (degree == 0) return make_closed_form(Step{});
  if (degree == 1) return relu();
  return make_closed_form(RectifiedMonomial{degree});
}

}  // namespace widelimit::numerics
