// Derivatives of Gram matrices by numbers of networks, against closed forms.
#include "widelimit/kernel/gram_gradient.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

double worst(const Matrix<double>& got, const Matrix<double>& expected) {
  REQUIRE(got.rows() == expected.rows());
  REQUIRE(got.cols() == expected.cols());
  return (got - expected).cwiseAbs().maxCoeff() / expected.cwiseAbs().maxCoeff();
}

TEST_CASE("gram_gradient: variances of a ReLU network are powers") {
  const Network network(
      {dense({.weight_variance = 1.7}), relu(), dense({.weight_variance = 0.6}), relu(), dense()});
  const auto x = random_inputs(1, {5, 4}), z = random_inputs(2, {3, 4});
  const std::vector<std::string> numbers{"layers[2].weight_variance", "layers[0].weight_variance"};
  for (const bool same : {true, false}) {
    const auto kernels = same ? gram<double>(network, x) : gram<double>(network, x, z);
    const auto gradient = same ? gram_gradient(network, x, numbers) : gram_gradient(network, x, z, numbers);
    REQUIRE(gradient.size() == 2);
    CHECK(worst(gradient[0].nngp, kernels.nngp / 0.6) < 1e-11);
    CHECK(worst(gradient[1].nngp, kernels.nngp / 1.7) < 1e-11);
    // Every term of the NTK has all variances as factors too.
    CHECK(worst(gradient[1].ntk, kernels.ntk / 1.7) < 1e-11);
  }
  const auto both =
      gram_jvp(network, x, {{"layers[0].weight_variance", 2}, {"layers[2].weight_variance", -1}});
  const auto gradient = gram_gradient(network, x, numbers);
  CHECK(worst(both.nngp, 2 * gradient[1].nngp - gradient[0].nngp) < 1e-10);
  CHECK(worst(both.ntk, 2 * gradient[1].ntk - gradient[0].ntk) < 1e-10);
  CHECK((both.ntk - both.ntk.transpose()).cwiseAbs().maxCoeff() == 0);
}

TEST_CASE("gram_gradient: at the end of a range, one-sided") {
  const Network network(
      {dense({.weight_variance = 1.3}), erf(), dense({.weight_variance = 2, .bias_variance = 0})});
  const auto x = random_inputs(3, {4, 3});
  const auto gradient = gram_jvp(network, x, {{"layers[2].bias_variance", 1}});
  CHECK((gradient.nngp.array() - 1).abs().maxCoeff() < 1e-9);
  CHECK((gradient.ntk.array() - 1).abs().maxCoeff() < 1e-9);
  const auto weight =
      gram_jvp(Network({dense({.weight_variance = 0})}), x, {{"layers[0].weight_variance", 1}});
  const auto one = gram<double>(Network({dense()}), x);
  CHECK(worst(weight.nngp, one.nngp) < 1e-10);
}

TEST_CASE("gram_gradient: slopes of activations, factors of branches and epsilons of norms") {
  const auto x = random_inputs(4, {4, 6});
  // erf(b z) of variance v is erf of variance b^2 v.
  const Network scaled({dense({.weight_variance = 1.4}), erf(1, 0.8), dense()});
  const auto gradient = gram_gradient(scaled, x, {"layers[1].b", "layers[0].weight_variance"});
  CHECK(worst(0.8 * gradient[0].nngp, 2 * 1.4 * gradient[1].nngp) < 1e-10);
  // A norm over channels after a dense layer: K / sqrt((p + e) (q + e)).
  const double epsilon = 0.125;
  const Network normed({dense({.weight_variance = 1.5}), layer_norm({.epsilon = epsilon})});
  const auto inner = gram<double>(Network({dense({.weight_variance = 1.5})}), x).nngp;
  Matrix<double> expected(4, 4);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) {
      const double p = inner(i, i) + epsilon, q = inner(j, j) + epsilon;
      expected(i, j) = -0.5 * inner(i, j) / std::sqrt(p * q) * (1 / p + 1 / q);
    }
  CHECK(worst(gram_jvp(normed, x, {{"layers[1].epsilon", 1}}).nngp, expected) < 1e-9);
}

TEST_CASE("gram_gradient: sampled layers draw the same along the line") {
  const auto x = random_inputs(5, {2, 3, 2});
  const Network network(
      {attention({.scaling = AttentionScaling::inverse_sqrt_width, .output_value_variance = 1.5}),
       global_average_pool(), dense()});
  const auto kernels = gram<double>(network, x);
  const auto gradient = gram_jvp(network, x, {{"layers[0].output_value_variance", 1}});
  CHECK(worst(gradient.nngp, kernels.nngp / 1.5) < 1e-10);
  CHECK(gradient.nngp_error.size() == 0);
}

TEST_CASE("gram_gradient: kernels asked for, progress, and errors") {
  const Network network({dense({.weight_variance = 1.5}), relu(), dense()});
  const auto x = random_inputs(6, {3, 4});
  const auto only = gram_jvp(network, x, {{"layers[0].weight_variance", 1}}, Kernels::nngp);
  CHECK(only.nngp.size() == 9);
  CHECK(only.ntk.size() == 0);
  std::ptrdiff_t last = 0, total = 0;
  RunControl run;
  run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
    last = done;
    total = all;
  };
  static_cast<void>(gram_gradient(network, x, {"layers[0].weight_variance", "layers[2].weight_variance"},
                                  Kernels::both, run));
  CHECK(last == total);
  CHECK(total == 2 * 8 * 6);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_jvp(network, x, {})),
                       "gram_jvp: expected a direction along which a number changes, got none",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_jvp(network, x, {{"layers[0].weight_variance", std::nan("")}})),
                       "gram_jvp: the change of 'layers[0].weight_variance' must be finite, got nan",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_gradient(network, x, {"layers[1].slope"})),
                       doctest::Contains("'layers[1].slope': the network has no such field"), ArgumentError);
  std::stop_source stop;
  stop.request_stop();
  RunControl stopped;
  stopped.stop = stop.get_token();
  CHECK_THROWS_AS(
      static_cast<void>(gram_jvp(network, x, {{"layers[0].weight_variance", 1}}, Kernels::both, stopped)),
      Cancelled);
}

TEST_CASE("gram_gradient: small and large kernels") {
  const Network network(
      {dense({.weight_variance = 1.5}), relu(), dense({.bias_variance = 0}), relu(), dense()});
  for (const double scale : {1e-3, 0.02, 10.0, 255.0}) {
    CAPTURE(scale);
    xt::xarray<double> x = scale * random_inputs(8, {4, 5}), unit = random_inputs(8, {4, 5});
    // K(s x, b) = s^2 K(x, b / s^2)
    const auto scaled = gram_jvp(network, x, {{"layers[2].bias_variance", 1}}),
               of_unit = gram_jvp(network, unit, {{"layers[2].bias_variance", 1}});
    CHECK(worst(scaled.nngp, of_unit.nngp) < 1e-8);
    CHECK(worst(scaled.ntk, of_unit.ntk) < 1e-8);
  }
}

TEST_CASE("gram_gradient: a derivative beside a kernel 1e10 times as large") {
  // The second branch sees normalised inputs: its derivative is their cosine, whatever the first one adds.
  const Layers normed{dense(), rms_norm(), dense({.weight_variance = 0.4})};
  const Network network({sum({Branch{}, Branch{1, normed}}), dense()});
  const NumberDirection direction{{"layers[0].branches[1].layers[2].weight_variance", 1}};
  for (const double scale : {1e3, 1e4, 1e5}) {
    CAPTURE(scale);
    const xt::xarray<double> x = scale * random_inputs(10, {6, 2});
    const Matrix<double> kernel = gram<double>(Network({dense()}), x).nngp;
    const Matrix<double> got = gram_jvp(network, x, direction, Kernels::nngp).nngp;
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 6; ++j)
        CHECK(std::abs(got(i, j) - kernel(i, j) / std::sqrt(kernel(i, i) * kernel(j, j))) <=
              1e-13 * kernel.maxCoeff());
  }
}

TEST_CASE("gram_gradient: the step serves a batch, not its first inputs") {
  // The kernel follows the slope of erf(b x) the more closely, the larger its inputs are.
  const Network network({dense(), erf(1, 1.2), dense()});
  xt::xarray<double> small_first = random_inputs(11, {8, 3});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t k = 0; k < 3; ++k) small_first(i, k) *= 1e-6;
  xt::xarray<double> large_first = small_first;
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t k = 0; k < 3; ++k) large_first(i, k) = small_first(7 - i, k);
  const NumberDirection direction{{"layers[1].b", 1}};
  const auto one = gram_jvp(network, small_first, direction),
             other = gram_jvp(network, large_first, direction);
  CHECK(worst(one.nngp, other.nngp.reverse()) < 1e-11);
  CHECK(worst(one.ntk, other.ntk.reverse()) < 1e-11);
}

TEST_CASE("gram_gradient: networks with layers that files do not know") {
  const Network network(
      {dense({.weight_variance = 1.5}),
       nonlinearity("own", numerics::quadrature_activation([](double x) { return std::tanh(x); })),
       dense({.weight_variance = 3})});
  const auto x = random_inputs(9, {3, 4});
  const auto kernels = gram<double>(network, x);
  CHECK(worst(gram_jvp(network, x, {{"layers[2].weight_variance", 1}}).nngp, kernels.nngp / 3) < 1e-9);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_jvp(network, x, {{"layers[1].slope", 1}})),
                       doctest::Contains("layers[1]"), NetworkError);
}

TEST_CASE("gram_gradient: a jump is an error") {
  // A standard layer has biases as soon as their variance is not 0, and their gradients count 1.
  const Network network({dense(
      {.weight_variance = 1.5, .bias_variance = 0, .standard = StandardParametrisation{.input_width = 4}})});
  const auto x = random_inputs(7, {3, 4});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram_jvp(network, x, {{"layers[0].bias_variance", 1}})),
      doctest::Contains("gram_jvp: layers[0].bias_variance: no derivative of the ntk was found"),
      NumericalError);
}

}  // namespace
}  // namespace widelimit::testing
