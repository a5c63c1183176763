#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "layers/common/seen_positions.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::finite {

/// The function from the logits of a head to its attention weights, under the mask, and its derivative.
template <typename Scalar>
class HeadWeights {
 public:
  /// The weights of d positions.
  HeadWeights(const layers::AttentionOptions& options, Index d)
      : adds_one_{options.weights.is_softmax1()},
        alibi_slope_{static_cast<Scalar>(options.sequence.alibi_slope)},
        zeta_{options.weights.is_softmax() ? nullptr : layers::activation_of(options.weights.nonlinearity())},
        seen_(options, d) {}

  [[nodiscard]] bool is_softmax() const { return zeta_ == nullptr; }

  /// Replaces logits [d, d] by weights. For elementwise weights `slopes` receives zeta'; softmax does not touch it.
  void apply(Scalar* logit_data, Scalar* slope_data) const {
    const Index d = seen_.size();
    Eigen::Map<Matrix<Scalar>> logits(logit_data, d, d);
    if (is_softmax()) {
      for (Index a = 0; a < d; ++a) apply_softmax(a, logits);
      return;
    }
    Eigen::Map<Matrix<Scalar>> slopes(slope_data, d, d);
    slopes.setZero();
    for (Index a = 0; a < d; ++a) apply_elementwise(a, logits, slopes);
  }

  /// Replaces a direction of the logits by the derivative of the weights along it, given what apply() wrote. The
  /// Jacobian of each row is symmetric, so gradients pass backward by the same function.
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
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;

  void apply_softmax(Index a, Eigen::Map<Matrix<Scalar>>& logits) const {
    const Row row = logits.row(a);
    logits.row(a).setZero();
    Scalar largest = adds_one_ ? Scalar{0} : -std::numeric_limits<Scalar>::infinity();
    for_each_seen(a, [&](Index c) { largest = std::max(largest, row[c] - bias(a, c)); });
    Scalar sum = adds_one_ ? std::exp(-largest) : Scalar{0};
    for_each_seen(a, [&](Index c) { sum += logits(a, c) = std::exp(row[c] - bias(a, c) - largest); });
    logits.row(a) /= sum;
  }

  void apply_elementwise(Index a, Eigen::Map<Matrix<Scalar>>& logits,
                         Eigen::Map<Matrix<Scalar>>& slopes) const {
    const Row row = logits.row(a);
    logits.row(a).setZero();
    for_each_seen(a, [&](Index c) {
      slopes(a, c) = static_cast<Scalar>(zeta_->derivative(static_cast<double>(row[c])));
      logits(a, c) = static_cast<Scalar>(zeta_->value(static_cast<double>(row[c])));
    });
  }

  [[nodiscard]] Scalar bias(Index a, Index c) const {
    return alibi_slope_ * static_cast<Scalar>(std::abs(a - c));
  }

  template <typename Body>
  void for_each_seen(Index a, const Body& body) const {
    for (const layers::PositionRange& range : seen_.of(a))
      for (Index c = range.begin; c < range.end; ++c) body(c);
  }

  bool adds_one_;  ///< Whether the weights are softmax1.
  Scalar alibi_slope_;
  numerics::ActivationPtr zeta_;
  layers::SeenPositions seen_;
};

}  // namespace widelimit::finite
