#include "finite/pointwise_layers.hpp"

#include "finite/seeds.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::finite {
namespace {

/// Tape: the input.
template <typename Scalar>
class ActivationLayer final : public FiniteLayer<Scalar> {
 public:
  ActivationLayer(const Site& site, numerics::ActivationPtr activation)
      : form_{site.input}, activation_{std::move(activation)} {}

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    Matrix<Scalar> output = input.values.unaryExpr(
        [this](Scalar x) { return static_cast<Scalar>(activation_->value(static_cast<double>(x))); });
    auto result = input.with(std::move(output));
    tape.saved.push_back(std::move(input.values));
    return result;
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    scale(tape, gradient.values);
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> direction,
                              const Scalar*) const override {
    scale(tape, direction.values);
    return direction;
  }

 private:
  void scale(const Tape<Scalar>& tape, Matrix<Scalar>& values) const {
    values.array() *= tape.saved[0].array().unaryExpr(
        [this](Scalar x) { return static_cast<Scalar>(activation_->derivative(static_cast<double>(x))); });
  }

  Form form_;
  numerics::ActivationPtr activation_;
};

/// Tape: the mask, 1 / keep or 0.
template <typename Scalar>
class Dropout final : public FiniteLayer<Scalar> {
 public:
  Dropout(const Site& site, double keep) : form_{site.input}, keep_{keep}, seed_{site.seed} {}

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    const Index rows = input.positions();
    Matrix<Scalar> mask(input.values.rows(), input.values.cols());
    for (Index i = 0; i < input.inputs; ++i) {
      numerics::RandomStream stream(mixed_seed(seed_, input.pass),
                                    static_cast<std::uint64_t>(input.first_input + i));
      for (Index k = 0; k < rows * mask.cols(); ++k)
        mask.data()[i * rows * mask.cols() + k] =
            stream.uniform() < keep_ ? static_cast<Scalar>(1 / keep_) : Scalar{0};
    }
    input.values.array() *= mask.array();
    tape.saved.push_back(std::move(mask));
    return input;
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    gradient.values.array() *= tape.saved[0].array();
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> direction,
                              const Scalar*) const override {
    direction.values.array() *= tape.saved[0].array();
    return direction;
  }

 private:
  Form form_;
  double keep_;
  std::uint64_t seed_;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_activation(const Site& site, numerics::ActivationPtr activation) {
  return std::make_unique<ActivationLayer<Scalar>>(site, std::move(activation));
}

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_dropout(const Site& site, double keep) {
  return std::make_unique<Dropout<Scalar>>(site, keep);
}

template std::unique_ptr<FiniteLayer<float>> make_activation(const Site&, numerics::ActivationPtr);
template std::unique_ptr<FiniteLayer<double>> make_activation(const Site&, numerics::ActivationPtr);
template std::unique_ptr<FiniteLayer<float>> make_dropout(const Site&, double);
template std::unique_ptr<FiniteLayer<double>> make_dropout(const Site&, double);

}  // namespace widelimit::finite
