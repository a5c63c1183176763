#include "layers/finite/affine.hpp"

#include <cmath>

#include "layers/finite/affine_map.hpp"
#include "layers/finite/patches.hpp"

namespace widelimit::finite {
namespace {

/// A dense layer, applied at every position. Its tape has the input.
template <typename Scalar>
class Dense final : public FiniteLayer<Scalar> {
 public:
  Dense(const Site& site, const AffineVariances& variances)
      : output_{site.input.shape, site.channels},
        map_(0, site.input.channels, site.channels, affine_scales(variances, site.input.channels)) {}

  Form output() const override { return output_; }
  Index parameter_count() const override { return map_.parameter_count(); }
  void initialise(Scalar* parameters) const override { map_.initialise(parameters); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    auto output = input.with(map_.apply(parameters, input.values));
    tape.saved.push_back(std::move(input.values));
    return output;
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    return gradient.with(map_.backward(parameters, tape.saved[0], gradient.values, gradient.inputs, sink));
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    return direction.with(map_.tangent(parameters, tape.saved[0], direction.values, parameter_direction));
  }

 private:
  Form output_;
  AffineMap<Scalar> map_;
};

/// A dense layer applied to what a window sees, which its tape has.
template <typename Scalar>
class Convolution final : public FiniteLayer<Scalar> {
 public:
  Convolution(const Site& site, const Window& window, const AffineVariances& variances)
      : input_{site.input.shape},
        patches_(window, site.input.shape),
        output_{patches_.output_shape(), site.channels},
        map_(0, site.input.channels * patches_.window_size(), site.channels,
             affine_scales(variances, site.input.channels, patches_.window_size())) {}

  Form output() const override { return output_; }
  Index parameter_count() const override { return map_.parameter_count(); }
  void initialise(Scalar* parameters) const override { map_.initialise(parameters); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.saved.push_back(patches_.gather(input.values, input.inputs));
    return input.with(map_.apply(parameters, tape.saved[0]), output_.shape);
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    const Matrix<Scalar> seen =
        map_.backward(parameters, tape.saved[0], gradient.values, gradient.inputs, sink);
    return gradient.with(patches_.scatter(seen, gradient.inputs), input_);
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    const Matrix<Scalar> seen = patches_.gather(direction.values, direction.inputs);
    return direction.with(map_.tangent(parameters, tape.saved[0], seen, parameter_direction), output_.shape);
  }

 private:
  Shape input_;
  Patches patches_;
  Form output_;
  AffineMap<Scalar> map_;
};

/// A convolution with weights of its own at every position. The rows of one position, which are d rows apart, pass
/// through a small dense layer. The tape has what the window sees.
template <typename Scalar>
class LocalConvolution final : public FiniteLayer<Scalar> {
 public:
  LocalConvolution(const Site& site, const Window& window, const AffineVariances& variances)
      : input_{site.input.shape},
        patches_(window, site.input.shape),
        output_{patches_.output_shape(), site.channels},
        in_{site.input.channels * patches_.window_size()},
        scales_{affine_scales(variances, site.input.channels, patches_.window_size())},
        weight_scale_{static_cast<Scalar>(scales_.weight_scale)},
        bias_scale_{static_cast<Scalar>(scales_.bias_scale)} {}

  Form output() const override { return output_; }
  Index parameter_count() const override { return position_count(output_.shape) * block(); }

  void initialise(Scalar* parameters) const override {
    for (Index a = 0; a < position_count(output_.shape); ++a)
      AffineMap<Scalar>(a * block(), in_, output_.channels, scales_).initialise(parameters);
  }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    tape.saved.push_back(patches_.gather(input.values, input.inputs));
    Matrix<Scalar> z(tape.saved[0].rows(), output_.channels);
    apply(parameters, tape.saved[0], Scalar{0}, z);
    add_biases(parameters, z);
    return input.with(std::move(z), output_.shape);
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    give_gradient(0, tape.saved[0], gradient.values, gradient.inputs, scales_, sink, Sharing::by_position);
    Matrix<Scalar> seen(gradient.values.rows(), in_);
    const Index d = position_count(output_.shape), out = output_.channels;
    for (Index a = 0; a < d; ++a)
      // The rows of position a of all inputs are d rows apart, which the stride d * out expresses without a copy.
      numerics::gemm(Transpose::no, Transpose::yes, gradient.inputs, in_, out, weight_scale_,
                     {gradient.values.data() + a * out, d * out}, {parameters + a * block(), out}, Scalar{0},
                     seen.data() + a * in_, d * in_);
    return gradient.with(patches_.scatter(seen, gradient.inputs), input_);
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    Matrix<Scalar> z(tape.saved[0].rows(), output_.channels);
    // d(x W + b) = x dW + dx W + db.
    apply(parameter_direction, tape.saved[0], Scalar{0}, z);
    apply(parameters, patches_.gather(direction.values, direction.inputs), Scalar{1}, z);
    add_biases(parameter_direction, z);
    return direction.with(std::move(z), output_.shape);
  }

 private:
  /// The number of parameters of one position.
  Index block() const { return (in_ + (bias_scale_ == 0 ? 0 : 1)) * output_.channels; }

  /// z = scale * seen W + keep * z, position by position.
  void apply(const Scalar* parameters, const Matrix<Scalar>& seen, Scalar keep, Matrix<Scalar>& z) const {
    const Index d = position_count(output_.shape), out = output_.channels;
    for (Index a = 0; a < d; ++a)
      numerics::gemm(Transpose::no, Transpose::no, seen.rows() / d, out, in_, weight_scale_,
                     {seen.data() + a * in_, d * in_}, {parameters + a * block(), out}, keep,
                     z.data() + a * out, d * out);
  }

  void add_biases(const Scalar* parameters, Matrix<Scalar>& z) const {
    if (bias_scale_ == 0) return;
    const Index d = position_count(output_.shape), out = output_.channels;
    using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
    for (Index row = 0; row < z.rows(); ++row)
      z.row(row) += bias_scale_ * Eigen::Map<const Row>(parameters + (row % d) * block() + in_ * out, out);
  }

  Shape input_;
  Patches patches_;
  Form output_;
  Index in_;
  AffineScales scales_;
  Scalar weight_scale_;
  Scalar bias_scale_;
};

}  // namespace

AffineScales affine_scales(const AffineVariances& variances, Index channels, Index positions) {
  const auto seen = static_cast<double>(positions), width = static_cast<double>(channels);
  const bool weights = variances.trains(layers::Trainable::weights),
             biases = variances.trains(layers::Trainable::biases);
  if (!variances.standard)
    return {.weight_scale = std::sqrt(variances.weight / (width * seen)),
            .bias_scale = std::sqrt(variances.bias),
            .trains_weights = weights,
            .trains_biases = biases};
  // At the width N/s of the limit the weights have the variance w / (N F / s). At any other width the forward pass is
  // rescaled by the root of the ratio of widths, so that the NTK keeps its factor N F / s.
  const double limit_width =
      static_cast<double>(variances.standard->input_width) / variances.standard->width_scale;
  const bool biased = variances.standard->zero_biases || variances.bias > 0;
  return {.weight_scale = std::sqrt(limit_width / width),
          .weight_deviation = std::sqrt(variances.weight / (limit_width * seen)),
          .bias_scale = biased ? 1.0 : 0.0,
          .bias_deviation = std::sqrt(variances.bias),
          .trains_weights = weights,
          .trains_biases = biases};
}

CounterpartPointer dense_counterpart(const AffineVariances& variances) {
  return finite_counterpart<Dense>(OutputChannels::chosen, variances);
}

CounterpartPointer convolution_counterpart(const Window& window, const AffineVariances& variances,
                                           Sharing sharing) {
  if (sharing == Sharing::by_position)
    return finite_counterpart<LocalConvolution>(OutputChannels::chosen, window, variances);
  return finite_counterpart<Convolution>(OutputChannels::chosen, window, variances);
}

}  // namespace widelimit::finite
