// A stop that is asked for ends what a finite network computes, between layers and within a gradient.
#include <doctest/doctest.h>

#include <stop_token>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/finite/monte_carlo.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

Network attending() { return Network({dense(), relu(), attention(), flatten(), dense()}); }

Matrix<double> inputs(Index n, Index numbers) { return Matrix<double>::Constant(n, numbers, 0.5); }

/// The identity, which asks for a stop in its forward pass and counts how often it is passed.
struct Stopper {
  std::stop_source source;
  int forwards = 0;
};

Stopper* stopper = nullptr;

template <typename Scalar>
class StoppingLayer final : public FiniteLayer<Scalar> {
 public:
  explicit StoppingLayer(const Site& site) : form_{site.input} {}
  Form output() const override { return form_; }
  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    ++stopper->forwards;
    stopper->source.request_stop();
    return input;
  }
  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    return gradient;
  }

 private:
  Form form_;
};

class Unused final : public PairStageOf<Unused> {
 public:
  StageRules rules() const override { return {}; }
  Shape output_shape(const Shape& input) const override { return input; }
  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>&, PairResult<Scalar>&) const {}
};

Layer stopping() {
  return pair_layer("stopping", std::make_shared<Unused>(),
                    finite_counterpart<StoppingLayer>(OutputChannels::kept));
}

TEST_CASE("what a finite network computes ends where a stop was asked for") {
  const FiniteNetwork<double> network(attending(), {{3}, 2}, {.hidden = 4}, {}, 1, 2);
  const xt::xarray<double> values = random_inputs(1, {5, 3, 2});
  const Inputs<double> x = values;
  std::stop_source source;
  source.request_stop();
  const std::stop_token stop = source.get_token();
  CHECK_THROWS_AS(FiniteNetwork<double>(attending(), {{3}, 2}, {.hidden = 4}, {}, 1, 2, stop), Cancelled);
  CHECK_THROWS_AS(network.forward(x, 0, 0, stop), Cancelled);
  CHECK_THROWS_AS(network.jacobian(x, 0, stop), Cancelled);
  CHECK_THROWS_AS(network.input_jacobian(x, 0, stop), Cancelled);
  CHECK_THROWS_AS(network.jacobian_vector(x, network.parameters(), stop), Cancelled);
  CHECK_THROWS_AS(network.vector_jacobian(x, inputs(5, 1), stop), Cancelled);
  CHECK_THROWS_AS(network.gradient(
                      x, 0, [](Index, const Matrix<double>& y) { return y; }, stop),
                  Cancelled);
  CHECK_THROWS_AS(empirical_nngp(network, x, x, stop), Cancelled);
  CHECK_THROWS_AS(empirical_nngp(network, x, stop), Cancelled);
  for (const NtkMethod method :
       {NtkMethod::jacobian_contraction, NtkMethod::structured, NtkMethod::vector_products})
    CHECK_THROWS_AS(empirical_ntk(network, x, {.method = method, .stop = stop}), Cancelled);
  CHECK_THROWS_AS(monte_carlo_kernel<double>(attending(), x, {.draws = 8, .stop = stop}), Cancelled);
  CHECK_THROWS_AS(check_limit(relu(), {.draws = 8, .stop = stop}), Cancelled);
}

TEST_CASE("layers after the one at which a stop was asked for are not computed") {
  Stopper now;
  stopper = &now;
  const FiniteNetwork<double> network(Network({stopping(), stopping(), dense()}), {{}, 2}, {}, {}, 1, 1);
  const Matrix<double> x = inputs(700, 2);  // Several pieces.
  CHECK_THROWS_AS(network.forward(x, 0, 0, now.source.get_token()), Cancelled);
  CHECK(now.forwards == 1);
  CHECK_NOTHROW(network.forward(x));
}

TEST_CASE("a stop within the gradient of a loss ends the backward pass") {
  std::stop_source source;
  const FiniteNetwork<double> network(Network({dense(), relu(), dense()}), {{}, 2}, {}, {}, 1, 1);
  const Matrix<double> x = inputs(3, 2);
  const auto stopping_loss = [&source](Index, const Matrix<double>& outputs) {
    source.request_stop();
    return outputs;
  };
  CHECK_THROWS_AS(network.gradient(x, 0, stopping_loss, source.get_token()), Cancelled);
}

}  // namespace
}  // namespace widelimit::testing
