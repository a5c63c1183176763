#include "widelimit/finite/empirical_kernel.hpp"

#include <doctest/doctest.h>

#include "finite/layer_zoo.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

template <typename Scalar = double>
xt::xarray<Scalar> inputs_of(const Shape& shape, Index count, unsigned seed = 3) {
  std::vector<Index> dimensions{count};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(3);
  return random_inputs<Scalar>(seed, dimensions);
}

template <typename Scalar>
FiniteNetwork<Scalar> network_of(const ZooLayer& subject, int threads = 1) {
  return FiniteNetwork<Scalar>(zoo_network(subject), Form{subject.shape, 3},
                               {.hidden = 6, .outputs = 3, .layers = {}},
                               {.count = 2, .key_width = 4, .value_width = 2}, 5, threads);
}

void check_methods(const ZooLayer& subject) {
  CAPTURE(subject.name);
  const auto network = network_of<double>(subject);
  const auto first = inputs_of(subject.shape, 3), second = inputs_of(subject.shape, 2, 4);
  const Inputs<double> x1 = zoo_inputs(subject, first), x2 = zoo_inputs(subject, second, 3);
  // The definition: Jacobians, output by output. Dropout numbers the inputs of x2 after those of x1, so that
  // they are put into one batch.
  const xt::xarray<double> numbers = xt::concatenate(xt::xtuple(first, second), 0);
  const Inputs<double> both = zoo_inputs(subject, numbers);
  Matrix<double> expected = Matrix<double>::Zero(3, 2);
  for (Index output = 0; output < 3; ++output) {
    const Matrix<double> jacobian = network.jacobian(both, output);
    expected += jacobian.topRows(3) * jacobian.bottomRows(2).transpose() / 3;
  }
  for (const NtkMethod method : {NtkMethod::automatic, NtkMethod::jacobian_contraction, NtkMethod::structured,
                                 NtkMethod::vector_products}) {
    CAPTURE(static_cast<int>(method));
    NtkOptions options;
    options.method = method;
    CHECK(relative_difference(empirical_ntk<double>(network, x1, x2, options), expected) < 1e-12);
    options.memory_bytes = 1;  // one input and one column at a time
    CHECK(relative_difference(empirical_ntk<double>(network, x1, x2, options), expected) < 1e-12);
  }
  const Matrix<double> outputs = network.forward(both);
  CHECK(relative_difference(empirical_nngp<double>(network, x1, x2),
                            outputs.topRows(3) * outputs.bottomRows(2).transpose() / 3) < 1e-14);
}

TEST_CASE("all ways to the empirical NTK give the product of Jacobians") {
  for (const ZooLayer& subject : zoo_layers())
    if (subject.layer.kind() != "sign") check_methods(subject);
}

TEST_CASE("all ways to the empirical NTK of attention give the product of Jacobians") {
  for (const ZooLayer& subject : zoo_attention()) check_methods(subject);
}

TEST_CASE("the empirical NTK averages over the outputs that are asked for") {
  const auto subject = zoo_layers().front();
  const auto network = network_of<double>(subject);
  const auto x = inputs_of(subject.shape, 3);
  const Matrix<double> jacobian = network.jacobian(x, 0);
  NtkOptions options;
  options.outputs = 1;
  CHECK(relative_difference(empirical_ntk<double>(network, x, options), jacobian * jacobian.transpose()) <
        1e-12);
  options.outputs = 4;
  CHECK_THROWS_WITH_AS(static_cast<void>(empirical_ntk<double>(network, x, options)),
                       "empirical_ntk: outputs must be in [0, 3], got 4", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(empirical_ntk<double>(network, inputs_of({2}, 3))),
                       "empirical_ntk: expected inputs of no positions and 3 channels, got 2 and 3 (input 0)",
                       ArgumentError);
}

TEST_CASE("float agrees with double") {
  for (const auto& zoo : {zoo_layers(), zoo_attention()})
    for (const ZooLayer& subject : zoo) {
      CAPTURE(subject.name);
      const auto exact = network_of<double>(subject);
      const auto rounded = network_of<float>(subject);
      const xt::xarray<float> numbers = inputs_of<float>(subject.shape, 3);
      const xt::xarray<double> wide_numbers = xt::cast<double>(numbers);
      const Inputs<float> x = zoo_inputs(subject, numbers);
      const Inputs<double> wide = zoo_inputs(subject, wide_numbers);
      CHECK(relative_difference(rounded.forward(x).cast<double>(), exact.forward(wide)) < 1e-4);
      CHECK(relative_difference(empirical_ntk<float>(rounded, x).cast<double>(),
                                empirical_ntk<double>(exact, wide)) < 1e-4);
    }
}

TEST_CASE("results do not depend on the number of threads") {
  const ZooLayer subject = zoo_attention()[4];
  const auto one = network_of<double>(subject, 1), three = network_of<double>(subject, 3);
  const auto x = inputs_of(subject.shape, 150);
  CHECK(one.parameters() == three.parameters());
  CHECK(one.forward(x) == three.forward(x));
  CHECK(one.jacobian(x, 1) == three.jacobian(x, 1));
  const Matrix<double> weights = Matrix<double>::Constant(150, 3, 0.1);
  CHECK(one.vector_jacobian(x, weights) == three.vector_jacobian(x, weights));
  CHECK(empirical_ntk<double>(one, x) == empirical_ntk<double>(three, x));
}

TEST_CASE("masks of dropout differ between inputs and passes, not between calls") {
  const Network network("dropout", {dense(), dropout(0.5), dense()});
  const FiniteNetwork<double> sample(network, {{}, 3}, {.hidden = 64, .outputs = 1, .layers = {}}, {}, 1);
  xt::xarray<double> x = xt::ones<double>({2, 3});
  const Matrix<double> outputs = sample.forward(x);
  CHECK(outputs(0, 0) != outputs(1, 0));
  CHECK(sample.forward(x) == outputs);
  CHECK(sample.forward(x, 1) != outputs);
  // The kernels are those of the pass that they name.
  const Matrix<double> others = sample.forward(x, 7), jacobian = sample.jacobian(x, 0, {}, 7);
  CHECK(relative_difference(empirical_nngp<double>(sample, x, {}, 7), others * others.transpose()) < 1e-14);
  CHECK(relative_difference(empirical_ntk<double>(sample, x, {.pass = 7}), jacobian * jacobian.transpose()) <
        1e-12);
  const Matrix<double> second = sample.jacobian(x, 0, {}, 7, 2);
  CHECK(relative_difference(empirical_ntk<double>(sample, x, x, {.pass = 7}), jacobian * second.transpose()) <
        1e-12);
  CHECK(sample.forward(x, 0, 1)(0, 0) == outputs(1, 0));
}

}  // namespace
}  // namespace widelimit::testing
