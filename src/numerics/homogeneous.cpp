#include <numbers>

#include "numerics/checks.hpp"
#include "numerics/closed_form.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::numerics {
namespace {

/// phi(x) = slope * x.
class Linear {
 public:
  explicit Linear(double slope) : slope_{slope} {}

  [[nodiscard]] double value(double x) const { return slope_ * x; }
  [[nodiscard]] double derivative(double) const { return slope_; }
  [[nodiscard]] HomogeneousSlopes slopes() const { return {slope_, slope_}; }

  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar, Scalar, Scalar c) const {
    const auto factor = static_cast<Scalar>(slope_ * slope_);
    return {factor * c, factor};
  }

 private:
  double slope_;
};

class Homogeneous {
 public:
  Homogeneous(double negative, double positive)
      : negative_{negative},
        positive_{positive},
        aligned_{(negative * negative + positive * positive) / 2},
        opposed_{negative * positive},
        weight_{(positive - negative) * (positive - negative) / (2 * std::numbers::pi)} {}

  [[nodiscard]] double value(double x) const { return (x < 0 ? negative_ : positive_) * x; }
  [[nodiscard]] double derivative(double x) const { return x < 0 ? negative_ : positive_; }
  [[nodiscard]] HomogeneousSlopes slopes() const { return {negative_, positive_}; }

  /// The angle is measured from the nearer of perfect correlation and perfect anticorrelation, where the
  /// derivative is the mean square and the product of the slopes: both ends are exact.
  template <typename Scalar>
  [[nodiscard]] Dual<Scalar> dual(Scalar p, Scalar q, Scalar c) const {
    const Scalar root = root_determinant(p, q, c);
    const Scalar angle = p > 0 && q > 0 ? std::atan2(root, std::abs(c)) : std::numbers::pi_v<Scalar> / 2;
    const auto weight = static_cast<Scalar>(weight_);
    const Scalar derivative = c < 0 ? static_cast<Scalar>(opposed_) + weight * angle
                                    : static_cast<Scalar>(aligned_) - weight * angle;
    return {weight * root + derivative * c, derivative};
  }

 private:
  double negative_;
  double positive_;
  double aligned_;  ///< E[phi'(u)^2]
  double opposed_;  ///< E[phi'(u) phi'(-u)]
  double weight_;
};

}  // namespace

ActivationPtr homogeneous(double negative, double positive) {
  require_finite("homogeneous", "the negative slope", negative);
  require_finite("homogeneous", "the positive slope", positive);
  if (negative == positive) return make_closed_form(Linear{positive});
  return make_closed_form(Homogeneous{negative, positive});
}

ActivationPtr identity() { return make_closed_form(Linear{1}); }

ActivationPtr relu() { return make_closed_form(Homogeneous{0, 1}); }

ActivationPtr leaky_relu(double slope) {
  require_finite("leaky_relu", "slope", slope);
  return homogeneous(slope, 1);
}

ActivationPtr abs() { return make_closed_form(Homogeneous{-1, 1}); }

}  // namespace widelimit::numerics
