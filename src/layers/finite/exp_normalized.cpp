#include "layers/finite/exp_normalized.hpp"

#include <cmath>

namespace widelimit::finite {
namespace {

/// With u = x / r and e = y / r: dy = sqrt(gamma) e dx + e (1 - sqrt(gamma) u) dr and dr = mean(u dx). The tape has u
/// and e. A position that is all zeros has no direction; u counts as 0 and e as its mean, as in the limit of infinite
/// width (docs/theory/kernel-recursion.md, section 3).
template <typename Scalar>
class ExpNormalised final : public FiniteLayer<Scalar> {
 public:
  ExpNormalised(const Site& site, double gamma, double shift)
      : form_{site.input},
        root_{static_cast<Scalar>(std::sqrt(gamma))},
        exponent_{static_cast<Scalar>(gamma * (shift - 1) / 2)},
        mean_{static_cast<Scalar>(std::exp(gamma * shift / 2))} {}

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    Matrix<Scalar> units = std::move(input.values), exponentials(units.rows(), units.cols());
    Matrix<Scalar> output = Matrix<Scalar>::Zero(units.rows(), units.cols());
    for (Index i = 0; i < units.rows(); ++i) {
      const Scalar r = std::sqrt(units.row(i).squaredNorm() / static_cast<Scalar>(units.cols()));
      if (r > 0) units.row(i) /= r;
      exponentials.row(i) = (root_ * units.row(i).array() + exponent_).exp();
      if (!(r > 0)) exponentials.row(i).setConstant(mean_);
      output.row(i) = r * exponentials.row(i);
    }
    tape.saved = {std::move(units), std::move(exponentials)};
    return input.with(std::move(output));
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    for (Index i = 0; i < gradient.values.rows(); ++i) {
      const auto u = tape.saved[0].row(i).array(), e = tape.saved[1].row(i).array();
      auto g = gradient.values.row(i).array();
      const Scalar through_root = (g * e * (1 - root_ * u)).mean();
      g = root_ * e * g + through_root * u;
    }
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> direction,
                              const Scalar*) const override {
    for (Index i = 0; i < direction.values.rows(); ++i) {
      const auto u = tape.saved[0].row(i).array(), e = tape.saved[1].row(i).array();
      auto x = direction.values.row(i).array();
      const Scalar root_change = (u * x).mean();
      x = root_ * e * x + root_change * e * (1 - root_ * u);
    }
    return direction;
  }

 private:
  Form form_;
  Scalar root_;      ///< sqrt(gamma)
  Scalar exponent_;  ///< gamma (shift - 1) / 2
  Scalar mean_;      ///< E[exp(sqrt(gamma) z)] exp(exponent)
};

}  // namespace

CounterpartPointer exp_normalized_counterpart(double gamma, double shift) {
  return finite_counterpart<ExpNormalised>(OutputChannels::kept, gamma, shift);
}

}  // namespace widelimit::finite
