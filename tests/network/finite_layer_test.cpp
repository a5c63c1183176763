#include "widelimit/network/finite_layer.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "gp/problem.hpp"

using namespace widelimit;
using namespace widelimit::finite;
using widelimit::gp_test::random_matrix;

namespace {

constexpr double weight_scale = 0.7, bias_scale = 0.3;

/// y = 0.7 x W + 0.3 b at every position, with one W and b or, `by_position`, with one for each; and then the output
/// times a last parameter g, whose gradients are plain numbers. No tangent() of its own.
template <typename Scalar>
class GainedAffine final : public FiniteLayer<Scalar> {
 public:
  GainedAffine(const Site& site, bool by_position) : site_{site}, by_position_{by_position} {}

  [[nodiscard]] Form output() const override { return {site_.input.shape, site_.channels}; }
  [[nodiscard]] Index parameter_count() const override {
    return (by_position_ ? positions() : 1) * block() + 1;
  }
  [[nodiscard]] Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                                            Tape<Scalar>& tape) const override {
    Matrix<Scalar> output(input.values.rows(), site_.channels);
    for (Index row = 0; row < output.rows(); ++row)
      for (Index k = 0; k < site_.channels; ++k) output(row, k) = affine(parameters, input.values, row, k);
    tape.saved = {input.values, output};
    output *= gain(parameters);
    return input.with(std::move(output));
  }
  [[nodiscard]] Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                                             Activations<Scalar> gradient,
                                             GradientSink<Scalar>& sink) const override {
    Matrix<Scalar> gains = Matrix<Scalar>::Zero(gradient.inputs, 1);
    for (Index row = 0; row < gradient.values.rows(); ++row)
      gains(row / positions(), 0) += gradient.values.row(row).dot(tape.saved[1].row(row));
    sink.plain(parameter_count() - 1, gains);
    const Matrix<Scalar> behind = gain(parameters) * gradient.values;
    sink.affine({0, tape.saved[0], behind, gradient.inputs, Scalar(weight_scale), Scalar(bias_scale),
                 by_position_ ? Sharing::by_position : Sharing::shared});
    Matrix<Scalar> input(behind.rows(), site_.input.channels);
    for (Index row = 0; row < behind.rows(); ++row)
      input.row(row) = Scalar(weight_scale) * behind.row(row) * weights(parameters, row).transpose();
    return gradient.with(std::move(input));
  }

 private:
  [[nodiscard]] Index positions() const { return position_count(site_.input.shape); }
  [[nodiscard]] Index block() const { return (site_.input.channels + 1) * site_.channels; }
  [[nodiscard]] Scalar gain(const Scalar* parameters) const { return parameters[parameter_count() - 1]; }
  [[nodiscard]] const Scalar* place(const Scalar* parameters, Index row) const {
    return parameters + (by_position_ ? (row % positions()) * block() : 0);
  }
  [[nodiscard]] Eigen::Map<const Matrix<Scalar>> weights(const Scalar* parameters, Index row) const {
    return {place(parameters, row), site_.input.channels, site_.channels};
  }
  [[nodiscard]] Scalar affine(const Scalar* parameters, const Matrix<Scalar>& x, Index row, Index k) const {
    return Scalar(weight_scale) * x.row(row).dot(weights(parameters, row).col(k)) +
           Scalar(bias_scale) * place(parameters, row)[site_.input.channels * site_.channels + k];
  }

  Site site_;
  bool by_position_;
};

/// Notes at which parameters gradients arrive.
class OffsetSink final : public GradientSink<double> {
 public:
  [[nodiscard]] const std::vector<Index>& offsets() const { return offsets_; }

 private:
  void add_affine(const AffineGradient<double>& gradient) override { offsets_.push_back(gradient.offset); }
  void add_plain(Index offset, const Matrix<double>&) override { offsets_.push_back(offset); }
  std::vector<Index> offsets_;
};

void send(GradientSink<double>& sink, Index offset) {
  const Matrix<double> number = Matrix<double>::Ones(1, 1);
  sink.affine({offset, number, number, 1, 1});
  sink.plain(offset + 1, number);
}

}  // namespace

TEST_CASE("finite layer: the tangent that backward passes make is the derivative of forward()") {
  for (const bool by_position : {false, true}) {
    CAPTURE(by_position);
    const GainedAffine<double> layer({.input = {{2}, 3}, .channels = 4, .seed = 0}, by_position);
    const FiniteLayer<double>& base = layer;
    const Matrix<double> x = random_matrix(3 * 2, 3, 1), dx = random_matrix(3 * 2, 3, 2),
                         w = random_matrix(layer.parameter_count(), 1, 3),
                         dw = random_matrix(layer.parameter_count(), 1, 4);
    const Activations<double> input{.values = x, .inputs = 3, .shape = {2}};
    Tape<double> tape;
    (void)base.forward(w.data(), input, tape);
    const auto tangent = base.tangent(w.data(), tape, input.with(dx), dw.data());
    // forward() is a polynomial of degree 3 along a line: differences of fourth order are exact but for rounding.
    const auto at = [&](double t) {
      const Matrix<double> moved = w + t * dw;
      Tape<double> other;
      return base.forward(moved.data(), input.with(x + t * dx), other).values;
    };
    const Matrix<double> expected = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12;
    REQUIRE(tangent.values.rows() == 6);
    REQUIRE(tangent.values.cols() == 4);
    CHECK(tangent.form() == layer.output());
    CHECK((tangent.values - expected).cwiseAbs().maxCoeff() < 1e-12 * expected.cwiseAbs().maxCoeff());
    CHECK(expected.cwiseAbs().minCoeff() > 0);
  }
}

TEST_CASE("finite layer: offsets count from those of the scopes around them, and no further") {
  OffsetSink sink;
  send(sink, 0);
  {
    const GradientSink<double>::Scope outer(sink, 10);
    send(sink, 1);
    {
      const GradientSink<double>::Scope inner(sink, 100);
      send(sink, 2);
    }
    send(sink, 3);
  }
  send(sink, 4);
  CHECK(sink.offsets() == std::vector<Index>{0, 1, 11, 12, 112, 113, 13, 14, 4, 5});
}

TEST_CASE("finite layer: a counterpart makes its class template in both precisions, with its arguments") {
  const Site site{.input = {{2}, 3}, .channels = 4, .seed = 0};
  const CounterpartPointer shared = finite_counterpart<GainedAffine>(OutputChannels::chosen, false),
                           apart = finite_counterpart<GainedAffine>(OutputChannels::kept, true);
  CHECK(shared->channels() == OutputChannels::chosen);
  CHECK(apart->channels() == OutputChannels::kept);
  CHECK(shared->make_double(site)->parameter_count() == 17);
  CHECK(shared->make_float(site)->parameter_count() == 17);
  CHECK(apart->make_double(site)->parameter_count() == 33);
  CHECK(apart->make_float(site)->output() == Form{{2}, 4});
}

TEST_CASE("finite layer: a layer that says no more has no parameters and leaves drawn ones alone") {
  class Plain final : public FiniteLayer<double> {
   public:
    [[nodiscard]] Form output() const override { return {{}, 1}; }
    [[nodiscard]] Activations<double> forward(const double*, Activations<double> input,
                                              Tape<double>&) const override {
      return input;
    }
    [[nodiscard]] Activations<double> backward(const double*, const Tape<double>&,
                                               Activations<double> gradient,
                                               GradientSink<double>&) const override {
      return gradient;
    }
  };
  const Plain plain;
  CHECK(plain.parameter_count() == 0);
  std::vector<double> parameters{1, 2};
  plain.initialise(parameters.data());
  CHECK(parameters == std::vector<double>{1, 2});
}
