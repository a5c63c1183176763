#include "layers/finite/pointwise.hpp"

#include "layers/finite/seeds.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::finite {
namespace {

/// A nonlinearity. Its tape has the input.
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

/// Dropout. Its tape has 1 / keep for every number that is kept, and 0 for the others.
template <typename Scalar>
class Dropout final : public FiniteLayer<Scalar> {
 public:
  Dropout(const Site& site, double keep) : form_{site.input}, keep_{keep}, seed_{site.seed} {}

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    const Index rows = input.positions();
    Matrix<Scalar> kept(input.values.rows(), input.values.cols());
    for (Index i = 0; i < input.inputs; ++i) {
      // The stream depends on the input's number in the batch, so that cutting a batch into parts changes no draws.
      numerics::RandomStream stream(mixed_seed(seed_, input.pass),
                                    static_cast<std::uint64_t>(input.first_input + i));
      for (Index k = 0; k < rows * kept.cols(); ++k)
        kept.data()[i * rows * kept.cols() + k] =
            stream.uniform() < keep_ ? static_cast<Scalar>(1 / keep_) : Scalar{0};
    }
    input.values.array() *= kept.array();
    tape.saved.push_back(std::move(kept));
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

CounterpartPointer activation_counterpart(numerics::ActivationPtr activation) {
  return finite_counterpart<ActivationLayer>(OutputChannels::kept, std::move(activation));
}

CounterpartPointer dropout_counterpart(double keep) {
  return finite_counterpart<Dropout>(OutputChannels::kept, keep);
}

}  // namespace widelimit::finite
