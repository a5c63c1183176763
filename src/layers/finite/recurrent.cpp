#include "layers/finite/recurrent.hpp"

#include "layers/finite/affine_map.hpp"

namespace widelimit::finite {
namespace {

/// The tape has the input, the hidden states before each step, and z.
template <typename Scalar>
class Recurrent final : public FiniteLayer<Scalar> {
 public:
  Recurrent(const Site& site, const layers::RecurrentOptions& options)
      : output_{site.input.shape, site.channels},
        backward_{options.direction == layers::RecurrentDirection::backward},
        activation_{layers::activation_of(options.nonlinearity)},
        of_input_(0, site.input.channels, site.channels,
                  affine_scales({options.weight_variance, options.bias_variance}, site.input.channels)),
        of_state_(of_input_.parameter_count(), site.channels, site.channels,
                  affine_scales({options.recurrent_variance, 0}, site.channels)) {}

  Form output() const override { return output_; }
  Index parameter_count() const override { return of_input_.parameter_count() + of_state_.parameter_count(); }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    Matrix<Scalar> z = of_input_.apply(parameters, input.values);
    Matrix<Scalar> states = Matrix<Scalar>::Zero(z.rows(), z.cols()), output(z.rows(), z.cols());
    Matrix<Scalar> state = Matrix<Scalar>::Zero(input.inputs, z.cols());
    for (Index step = 0; step < steps(); ++step) {
      rows(states, step) = state;
      // Nothing comes before the first step, whatever the state's weights.
      if (step > 0) rows(z, step) += of_state_.apply(parameters, state);
      state = rows(z, step).unaryExpr(
          [this](Scalar x) { return static_cast<Scalar>(activation_->value(static_cast<double>(x))); });
      rows(output, step) = state;
    }
    auto result = input.with(std::move(output));
    tape.saved = {std::move(input.values), std::move(states), std::move(z)};
    return result;
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    Matrix<Scalar> of_z(gradient.values.rows(), gradient.values.cols());
    Matrix<Scalar> later = Matrix<Scalar>::Zero(gradient.inputs, of_z.cols());
    for (Index step = steps(); step-- > 0;) {
      rows(of_z, step) =
          (Matrix<Scalar>(rows(gradient.values, step)) + later).cwiseProduct(slopes(tape, step));
      if (step > 0) later = of_state_.transposed(parameters, rows(of_z, step));
    }
    // One weight matrix for all steps: its gradient is the sum over them, that over positions.
    of_state_.give(tape.saved[1], of_z, gradient.inputs, sink);
    return gradient.with(of_input_.backward(parameters, tape.saved[0], of_z, gradient.inputs, sink));
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    Matrix<Scalar> z = of_input_.tangent(parameters, tape.saved[0], direction.values, parameter_direction);
    Matrix<Scalar> state = Matrix<Scalar>::Zero(direction.inputs, z.cols());
    for (Index step = 0; step < steps(); ++step) {
      if (step > 0)
        rows(z, step) += of_state_.tangent(parameters, rows(tape.saved[1], step), state, parameter_direction);
      state = Matrix<Scalar>(rows(z, step)).cwiseProduct(slopes(tape, step));
      rows(z, step) = state;
    }
    return direction.with(std::move(z));
  }

 private:
  [[nodiscard]] Index steps() const { return position_count(output_.shape); }

  /// The rows [inputs, channels] of a step; those of an input stand one after another.
  template <typename Numbers>
  [[nodiscard]] auto rows(Numbers& numbers, Index step) const {
    using Element = std::conditional_t<std::is_const_v<Numbers>, const Matrix<Scalar>, Matrix<Scalar>>;
    const Index position = backward_ ? steps() - 1 - step : step;
    return Eigen::Map<Element, 0, Eigen::OuterStride<>>(numbers.data() + position * numbers.cols(),
                                                        numbers.rows() / steps(), numbers.cols(),
                                                        Eigen::OuterStride<>(steps() * numbers.cols()));
  }

  [[nodiscard]] Matrix<Scalar> slopes(const Tape<Scalar>& tape, Index step) const {
    return rows(tape.saved[2], step).unaryExpr([this](Scalar x) {
      return static_cast<Scalar>(activation_->derivative(static_cast<double>(x)));
    });
  }

  Form output_;
  bool backward_;
  numerics::ActivationPtr activation_;
  AffineMap<Scalar> of_input_, of_state_;
};

}  // namespace

CounterpartPointer recurrent_counterpart(const layers::RecurrentOptions& options) {
  return finite_counterpart<Recurrent>(OutputChannels::chosen, options);
}

}  // namespace widelimit::finite
