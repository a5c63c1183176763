#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {
namespace {

/// Adds <gradient of the parameters, direction> of input i to the i-th number, without ever storing the gradient.
template <typename Scalar>
class DirectionalSink final : public GradientSink<Scalar> {
 public:
  DirectionalSink(const Scalar* direction, Index n)
      : direction_{direction}, derivatives_(Vector<Scalar>::Zero(n)) {}

  [[nodiscard]] const Vector<Scalar>& derivatives() const { return derivatives_; }

 private:
  void add_affine(const AffineGradient<Scalar>& g) override {
    // The gradient of one position is an outer product x g^T for the weights and g for the biases. Its product with a
    // direction (D, b) is x^T D g + g^T b.
    const Index in = g.inputs.cols(), out = g.gradients.cols(), rows = g.inputs.rows() / g.n;
    const Index block = g.block();
    for (Index row = 0; row < g.inputs.rows(); ++row) {
      // A block of parameters holds the weights [in, out], row by row, and then the biases [out], if there are any.
      // Shared weights are one block; otherwise there is one for each of the `rows` positions.
      const Scalar* at = direction_ + g.offset + (g.sharing == Sharing::shared ? 0 : (row % rows) * block);
      const Eigen::Map<const Matrix<Scalar>> weights(at, in, out);
      Scalar sum = g.weight_scale * (g.inputs.row(row) * weights).dot(g.gradients.row(row));
      if (g.bias_scale != 0)
        sum += g.bias_scale *
               g.gradients.row(row).dot(
                   Eigen::Map<const Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>(at + in * out, out));
      derivatives_[row / rows] += sum;
    }
  }

  void add_plain(Index offset, const Matrix<Scalar>& gradients) override {
    derivatives_ += gradients * Eigen::Map<const Vector<Scalar>>(direction_ + offset, gradients.cols());
  }

  const Scalar* direction_;
  Vector<Scalar> derivatives_;
};

}  // namespace

template <typename Scalar>
Activations<Scalar> FiniteLayer<Scalar>::tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                                                 Activations<Scalar> direction,
                                                 const Scalar* parameter_direction) const {
  const Form form = output();
  const Index n = direction.inputs, d = position_count(form.shape);
  auto result = direction.with(Matrix<Scalar>(n * d, form.channels), form.shape);
  // This default is for layers without a tangent of their own. Backward passes give rows of the Jacobian, so that one
  // is run for each of the d * channels outputs. Inputs do not mix in a layer, so that one pass serves all n of them:
  // the gradient at input i is that of its own output alone.
  for (Index a = 0; a < d; ++a)
    for (Index channel = 0; channel < form.channels; ++channel) {
      direction.stop.check();
      auto one = direction.with(Matrix<Scalar>::Zero(n * d, form.channels), form.shape);
      for (Index i = 0; i < n; ++i) one.values(i * d + a, channel) = 1;
      DirectionalSink<Scalar> sink(parameter_direction, n);
      const auto gradient = backward(parameters, tape, std::move(one), sink);
      const Index rows = direction.values.rows() / n;
      for (Index i = 0; i < n; ++i)
        result.values(i * d + a, channel) =
            // The derivative of an output has two parts: one along the direction of the parameters and one along the
            // direction of the layer's input.
            sink.derivatives()[i] + gradient.values.middleRows(i * rows, rows)
                                        .cwiseProduct(direction.values.middleRows(i * rows, rows))
                                        .sum();
    }
  return result;
}

template class FiniteLayer<float>;
template class FiniteLayer<double>;

}  // namespace widelimit::finite
