// Networks with nonlinearities by quadrature on a device against the CPU engine.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/backends/device/device_comparison.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/kernel_products.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::testing::device_smooth_test {
namespace {

constexpr double float_error = 3e-6, double_error = 1e-12;

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

/// Numbers of floats: equal inputs, opposed ones, one that is 0, one that is twice another, and a large one.
xt::xarray<double> inputs_of(std::vector<Index> shape) {
  shape.insert(shape.begin(), 7);
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(5, shape));
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 4) = 0;
  xt::view(x, 5) = 2 * xt::view(x, 0);
  xt::view(x, 6) = 8 * xt::view(x, 3);
  return x;
}

const std::string dense = R"({"layer": "dense", "weight_variance": 1.7, "bias_variance": 0.1},)",
                  conv = R"({"layer": "conv", "filter": [3], "weight_variance": 1.5, "bias_variance": 0.1},)",
                  tanh = R"({"layer": "tanh"},)", silu = R"({"layer": "silu"},)",
                  sigmoid = R"({"layer": "sigmoid"},)", softplus = R"({"layer": "softplus"},)";

void check_both_types(const Network& network, const std::vector<Index>& shape) {
  const xt::xarray<double> numbers = inputs_of(shape);
  const Inputs<double> x(numbers);
  check_against_cpu<float>(network, x, x, float_error);
  check_against_cpu<double>(network, x, x, double_error);
}

TEST_CASE("networks without positions") {
  check_both_types(
      network_of(dense + tanh + dense + silu + dense + softplus + dense + tanh + R"({"layer": "dense"})"),
      {6});
  check_both_types(network_of(dense + sigmoid + dense + R"({"layer": "relu"})"), {6});
}

TEST_CASE("networks with positions") {
  check_both_types(
      network_of(conv + tanh + conv + softplus + R"({"layer": "global_average_pool"}, {"layer": "dense"})"),
      {5, 2});
  check_both_types(network_of(conv + silu + conv + sigmoid +
                              R"({"layer": "average_pool", "window": [2], "strides": [2]},)" + conv + tanh +
                              R"({"layer": "flatten"}, {"layer": "dense"})"),
                   {6, 2});
}

TEST_CASE("erf with a phase, of which devices have tables") {
  check_both_types(network_of(dense + R"({"layer": "erf", "a": 1.1, "b": 0.7, "c": 0.4, "d": 0.2},)" + dense +
                              R"({"layer": "tanh"})"),
                   {6});
}

TEST_CASE("attention weights by quadrature") {
  const auto attention = [](const std::string& weights) {
    return R"({"layer": "attention", "scaling": "inverse_sqrt_width", "query_key_std": 0.8, "bias_variance": 0.2,
               "weights": )" +
           weights + "},";
  };
  check_both_types(network_of(conv + tanh + attention(R"("sigmoid")") + R"({"layer": "layer_norm"},)" +
                              attention(R"({"layer": "erf", "c": 0.3})") +
                              R"({"layer": "global_average_pool"}, {"layer": "dense"})"),
                   {4, 2});
}

TEST_CASE("products without the matrix") {
  const xt::xarray<double> numbers = inputs_of({6});
  const Inputs<double> x(numbers);
  const Network network = network_of(dense + tanh + dense + silu + R"({"layer": "dense"})");
  const KernelProducts<double> products(network, x, on_device());
  const auto exact = gram(network, x);
  const Matrix<double> v = Matrix<double>::Random(7, 2);
  const auto check = [&](Kernels kernel, const Matrix<double>& whole) {
    CHECK((products.multiply(kernel, v) - whole * v).cwiseAbs().maxCoeff() < double_error * whole.norm());
  };
  check(Kernels::nngp, exact.nngp);
  check(Kernels::ntk, exact.ntk);
}

/// Inputs that come later ask for more tables; what there was of others stays as it was, to the bit.
TEST_CASE("entries do not depend on what else was asked for") {
  const xt::xarray<float> numbers = xt::cast<float>(inputs_of({6}));
  const Network network = network_of(dense + tanh + dense + softplus + R"({"layer": "dense"})");
  const xt::xarray<float> small = xt::view(numbers, xt::range(0, 5));
  const auto few = gram(network, Inputs<float>(small), on_device()),
             all = gram(network, Inputs<float>(numbers), on_device());
  CHECK(few.nngp == all.nngp.topLeftCorner(5, 5));
  CHECK(few.ntk == all.ntk.topLeftCorner(5, 5));
}

TEST_CASE("an NTK that is not to be had is an error that names the layer") {
  const auto cusp = numerics::quadrature_activation([](double x) { return std::cbrt(x); });
  const Network network({layers::dense({}), layers::nonlinearity("cusp", cusp), layers::dense({})});
  const xt::xarray<double> numbers = inputs_of({6});
  const std::string message =
      error_message<ArgumentError>([&] { return gram(network, Inputs<double>(numbers), on_device()); });
  CHECK(message.find("layers[1] (cusp)") != std::string::npos);
  CHECK(message.find("the NTK needs E phi'^2") != std::string::npos);
  const auto exact = gram(network, Inputs<double>(numbers), [] {
    GramOptions options;
    options.kernels = Kernels::nngp;
    return options;
  }());
  const auto computed = gram(network, Inputs<double>(numbers), on_device(Kernels::nngp));
  CHECK((computed.nngp - exact.nngp).cwiseAbs().maxCoeff() < 1e-10 * exact.nngp.maxCoeff());
}

/// A function of a user's own with a kink, and one that jumps.
TEST_CASE("functions of a user's own") {
  const auto elu = numerics::quadrature_activation([](double x) { return x > 0 ? x : std::expm1(x); }),
             step = numerics::quadrature_activation([](double x) { return x > 0.2 ? 1 + x / 2 : 0.1 * x; });
  const Network network({layers::dense({.weight_variance = 1.5}), layers::nonlinearity("elu", elu),
                         layers::dense({}), layers::nonlinearity("step", step), layers::dense({})});
  check_both_types(network, {6});
}

}  // namespace
}  // namespace widelimit::testing::device_smooth_test
