#include <cmath>
#include <numbers>

#include "numerics/closed_form.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

struct Erf {
  [[nodiscard]] static double value(double x) { return std::erf(x); }
  [[nodiscard]] static double derivative(double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }

  /// (2/pi) arcsin(2c / sqrt((1+2p)(1+2q))) as an arctangent: (1+2p)(1+2q) - 4c^2 is a sum of positive terms
  /// once written with the determinant, so neither part cancels at large variances.
  template <typename Scalar>
  [[nodiscard]] static Dual<Scalar> dual(Scalar p, Scalar q, Scalar c, double root) {
    const double sides = 0.25 + (static_cast<double>(p) / 2 + static_cast<double>(q) / 2);
    const auto half = static_cast<Scalar>(root_of_sum(sides, root));
    constexpr Scalar two_over_pi = 2 * std::numbers::inv_pi_v<Scalar>;
    return {two_over_pi * std::atan2(c, half), two_over_pi / half};
  }
};

}  // namespace

ActivationPtr erf() { return make_closed_form(Erf{}); }

}  // namespace widelimit::numerics
