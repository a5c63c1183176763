#pragma once

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::finite {

/// The function from the logits of a head to its attention weights, under the mask, and its derivative.
template <typename Scalar>
class HeadWeights {
 public:
  explicit HeadWeights(const layers::AttentionOptions& options)
      : mask_{options.mask},
        zeta_{options.weights.is_softmax() ? nullptr
                                           : layers::activation_of(options.weights.nonlinearity())} {}

  [[nodiscard]] bool is_softmax() const { return zeta_ == nullptr; }

  /// Logits [d, d] become weights; `slopes`, not read for softmax, gets zeta' for elementwise weights.
  void apply(Scalar* logit_data, Scalar* slope_data, Index d) const {
    Eigen::Map<Matrix<Scalar>> logits(logit_data, d, d);
    for (Index a = 0; a < d; ++a) {
      const Index visible = mask_ == AttentionMask::causal ? a + 1 : d;
      auto seen = logits.row(a).head(visible);
      logits.row(a).tail(d - visible).setZero();
      if (is_softmax()) {
        seen = (seen.array() - seen.maxCoeff()).exp().matrix();
        seen /= seen.sum();
        continue;
      }
      Eigen::Map<Matrix<Scalar>> slopes(slope_data, d, d);
      slopes.row(a).tail(d - visible).setZero();
      for (Index i = 0; i < visible; ++i) {
        slopes(a, i) = static_cast<Scalar>(zeta_->derivative(static_cast<double>(seen[i])));
        seen[i] = static_cast<Scalar>(zeta_->value(static_cast<double>(seen[i])));
      }
    }
  }

  /// The derivative along a direction of the logits, in place, from what apply() left. As a matrix it is
  /// symmetric, so gradients go back the same way.
  void differentiate(const Scalar* weight_data, const Scalar* slope_data, Matrix<Scalar>& direction) const {
    const Index d = direction.rows();
    if (!is_softmax()) {
      direction.array() *= Eigen::Map<const Matrix<Scalar>>(slope_data, d, d).array();
      return;
    }
    const Eigen::Map<const Matrix<Scalar>> weights(weight_data, d, d);
    for (Index a = 0; a < weights.rows(); ++a) {
      const Scalar mean = weights.row(a).dot(direction.row(a));
      direction.row(a).array() = weights.row(a).array() * (direction.row(a).array() - mean);
    }
  }

 private:
  AttentionMask mask_;
  numerics::ActivationPtr zeta_;
};

}  // namespace widelimit::finite
