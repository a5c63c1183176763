#include "layers/finite/norm.hpp"

namespace widelimit::finite {
namespace {

/// Tape: the output and the inverse roots.
template <typename Scalar>
class Norm final : public FiniteLayer<Scalar> {
 public:
  Norm(const Site& site, Centring centring, const layers::NormOptions& options)
      : form_{site.input},
        row_length_{options.axes == layers::NormAxes::channels
                        ? site.input.channels
                        : site.input.channels * position_count(site.input.shape)},
        norm_(centring, options.epsilon) {}

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>& tape) const override {
    Matrix<Scalar> roots = norm_.normalise(rows(input.values));
    tape.saved = {input.values, std::move(roots)};
    return input;
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    norm_.differentiate(rows(tape.saved[0]), tape.saved[1], rows(gradient.values));
    return gradient;
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>& tape, Activations<Scalar> direction,
                              const Scalar*) const override {
    norm_.differentiate(rows(tape.saved[0]), tape.saved[1], rows(direction.values));
    return direction;
  }

 private:
  Eigen::Map<Matrix<Scalar>> rows(Matrix<Scalar>& values) const {
    return {values.data(), values.size() / row_length_, row_length_};
  }
  Eigen::Map<const Matrix<Scalar>> rows(const Matrix<Scalar>& values) const {
    return {values.data(), values.size() / row_length_, row_length_};
  }

  Form form_;
  Index row_length_;
  NormalisedRows<Scalar> norm_;
};

}  // namespace

CounterpartPointer norm_counterpart(Centring centring, const layers::NormOptions& options) {
  return finite_counterpart<Norm>(OutputChannels::kept, centring, options);
}

}  // namespace widelimit::finite
