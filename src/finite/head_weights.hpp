#pragma once

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::finite {

/// The function from the logits of a head to its attention weights, under the mask, and its derivative.
template <typename Scalar>
class HeadWeights {
 public:
  using Block = Eigen::Ref<Matrix<Scalar>>;
  using ConstBlock = Eigen::Ref<const Matrix<Scalar>>;

  explicit HeadWeights(const layers::AttentionOptions& options)
      : mask_{options.mask},
        zeta_{options.weights.is_softmax() ? nullptr
                                           : layers::activation_of(options.weights.nonlinearity())} {}

  [[nodiscard]] bool is_softmax() const { return zeta_ == nullptr; }

  /// Logits [d, d] become weights; `slopes` gets zeta' for elementwise weights.
  void apply(Block logits, Block slopes) const {
    const Index d = logits.rows();
    for (Index a = 0; a < d; ++a) {
      const Index visible = mask_ == layers::AttentionMask::causal ? a + 1 : d;
      auto seen = logits.row(a).head(visible);
      logits.row(a).tail(d - visible).setZero();
      if (is_softmax()) {
        seen = (seen.array() - seen.maxCoeff()).exp().matrix();
        seen /= seen.sum();
        continue;
      }
      slopes.row(a).tail(d - visible).setZero();
      for (Index i = 0; i < visible; ++i) {
        slopes(a, i) = static_cast<Scalar>(zeta_->derivative(static_cast<double>(seen[i])));
        seen[i] = static_cast<Scalar>(zeta_->value(static_cast<double>(seen[i])));
      }
    }
  }

  /// The derivative along a direction of the logits, in place, from what apply() left. As a matrix it is
  /// symmetric, so gradients go back the same way.
  void differentiate(const ConstBlock& weights, const ConstBlock& slopes, Block direction) const {
    if (!is_softmax()) {
      direction.array() *= slopes.array();
      return;
    }
    for (Index a = 0; a < weights.rows(); ++a) {
      const Scalar mean = weights.row(a).dot(direction.row(a));
      direction.row(a).array() = weights.row(a).array() * (direction.row(a).array() - mean);
    }
  }

 private:
  layers::AttentionMask mask_;
  numerics::ActivationPtr zeta_;
};

}  // namespace widelimit::finite
