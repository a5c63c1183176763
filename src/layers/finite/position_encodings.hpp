#pragma once

#include <cmath>
#include <optional>

#include "layers/common/attention_positions.hpp"
#include "layers/finite/products.hpp"
#include "numerics/semidefinite.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// What attention sees of its input X: X~ = sqrt(w_in) X + root Z, where the encodings Z [d, channels] are
/// parameters, or X itself if nothing is encoded. It is linear in (X, Z), and thereby its own derivative.
template <typename Scalar>
class PositionEncodings {
  using Mat = Matrix<Scalar>;

 public:
  PositionEncodings(const std::optional<layers::PositionalEncodings>& positions, const Shape& shape) {
    if (!positions) return;
    input_scale_ = static_cast<Scalar>(std::sqrt(positions->input_weight));
    // A square root of the encodings' covariance, times the root of their weight. The covariance may be singular, so
    // it is no Cholesky factor.
    const Matrix<double> covariance = layers::position_covariance(*positions, shape, shape);
    root_ = (std::sqrt(positions->position_weight) * numerics::semidefinite_roots(covariance).factor())
                .template cast<Scalar>();
  }

  [[nodiscard]] bool are_there() const { return root_.size() != 0; }

  /// X~ of n inputs, [n d, channels].
  [[nodiscard]] Mat encode(const Scalar* parameters, const Mat& input, Index n) const {
    if (!are_there()) return input;
    const Index d = root_.rows();
    const Mat encodings = product(Scalar{1}, root_, ConstMap<Scalar>(parameters, d, input.cols()));
    Mat encoded = input_scale_ * input;
    for (Index i = 0; i < n; ++i) encoded.middleRows(i * d, d) += encodings;
    return encoded;
  }

  /// Turns gradients with respect to X~ into those with respect to X. The gradients of Z go to the sink.
  void backward(Mat& gradient, Index n, GradientSink<Scalar>& sink) const {
    if (!are_there()) return;
    const Mat roots = root_.replicate(n, 1);
    sink.affine({0, roots, gradient, n, Scalar{1}});
    gradient *= input_scale_;
  }

 private:
  Scalar input_scale_ = 1;
  Mat root_;  ///< [d, d]; empty without encodings.
};

}  // namespace widelimit::finite
