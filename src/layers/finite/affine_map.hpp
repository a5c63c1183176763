#pragma once

#include "layers/finite/affine.hpp"
#include "layers/finite/products.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// Gives the sink the gradient of an affine map whose parameters begin at `offset`, but for what is not trained.
template <typename Scalar>
void give_gradient(Index offset, const Matrix<Scalar>& x, const Matrix<Scalar>& gradient, Index inputs,
                   const AffineScales& scales, GradientSink<Scalar>& sink,
                   Sharing sharing = Sharing::shared) {
  // A scale of 0 gives no gradient.
  const auto weight_scale = static_cast<Scalar>(scales.trains_weights ? scales.weight_scale : 0),
             bias_scale = static_cast<Scalar>(scales.trains_biases ? scales.bias_scale : 0);
  sink.affine({offset, x, gradient, inputs, weight_scale, bias_scale, sharing, scales.bias_scale != 0});
}

/// z = weight_scale x W + bias_scale beta, the same at every position: the part with parameters of every layer that
/// has weights. Its parameters, from `offset` on, are W [in, out] and then beta [out], unless the scale of beta is 0.
template <typename Scalar>
class AffineMap {
 public:
  AffineMap(Index offset, Index in, Index out, const AffineScales& scales)
      : offset_{offset},
        in_{in},
        out_{out},
        scales_{scales},
        weight_scale_{static_cast<Scalar>(scales.weight_scale)},
        bias_scale_{static_cast<Scalar>(scales.bias_scale)} {}

  [[nodiscard]] Index in() const { return in_; }
  [[nodiscard]] Index out() const { return out_; }
  [[nodiscard]] Index parameter_count() const { return (in_ + (bias_scale_ == 0 ? 0 : 1)) * out_; }

  /// Turns standard normal numbers into initial parameters.
  void initialise(Scalar* parameters) const {
    using Numbers = Eigen::Map<Vector<Scalar>>;
    Numbers(parameters + offset_, in_ * out_) *= static_cast<Scalar>(scales_.weight_deviation);
    if (bias_scale_ != 0)
      Numbers(parameters + offset_ + in_ * out_, out_) *= static_cast<Scalar>(scales_.bias_deviation);
  }

  [[nodiscard]] Matrix<Scalar> apply(const Scalar* parameters, const Matrix<Scalar>& x) const {
    Matrix<Scalar> z = product(weight_scale_, x, weights(parameters));
    if (bias_scale_ != 0) z.rowwise() += bias_scale_ * biases(parameters);
    return z;
  }

  /// Returns the gradient with respect to x. That of the parameters goes to the sink.
  [[nodiscard]] Matrix<Scalar> backward(const Scalar* parameters, const Matrix<Scalar>& x,
                                        const Matrix<Scalar>& gradient, Index inputs,
                                        GradientSink<Scalar>& sink) const {
    give(x, gradient, inputs, sink);
    return transposed(parameters, gradient);
  }
  /// Its parts: gives the gradient of the parameters to the sink, and returns that with respect to x.
  void give(const Matrix<Scalar>& x, const Matrix<Scalar>& gradient, Index inputs,
            GradientSink<Scalar>& sink) const {
    give_gradient(offset_, x, gradient, inputs, scales_, sink);
  }
  [[nodiscard]] Matrix<Scalar> transposed(const Scalar* parameters, const Matrix<Scalar>& gradient) const {
    return product_transposed(weight_scale_, gradient, weights(parameters));
  }

  /// The derivative along (x', W', beta'): x W' + x' W + beta', with the scales.
  [[nodiscard]] Matrix<Scalar> tangent(const Scalar* parameters, const Matrix<Scalar>& x,
                                       const Matrix<Scalar>& x_direction,
                                       const Scalar* parameter_direction) const {
    Matrix<Scalar> z = apply(parameter_direction, x);
    multiply(Transpose::no, Transpose::no, weight_scale_, map_of(x_direction), weights(parameters), Scalar{1},
             z);
    return z;
  }

 private:
  [[nodiscard]] ConstMap<Scalar> weights(const Scalar* parameters) const {
    return ConstMap<Scalar>(parameters + offset_, in_, out_);
  }
  [[nodiscard]] auto biases(const Scalar* parameters) const {
    using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
    return Eigen::Map<const Row>(parameters + offset_ + in_ * out_, out_);
  }

  Index offset_;
  Index in_;
  Index out_;
  AffineScales scales_;
  Scalar weight_scale_;
  Scalar bias_scale_;
};

}  // namespace widelimit::finite
