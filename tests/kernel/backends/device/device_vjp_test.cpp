// Derivatives of kernels of vectors whose pairs a device computes, against the CPU's.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include "kernel/random_cases.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_vjp_test {
namespace {

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

std::string twice(const std::string& nonlinearity) {
  return R"({"layer": "dense", "weight_variance": 1.7, "bias_variance": 0.05}, {"layer": )" + nonlinearity +
         R"(}, {"layer": "dense", "weight_variance": 1.2}, {"layer": )" + nonlinearity +
         R"(}, {"layer": "dense"})";
}

Matrix<double> cotangent(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

/// Vectors of floats; with `special` ones that are equal, opposed, multiples, and 0.
xt::xarray<double> vectors(unsigned seed, Index count, Index channels, bool special = true) {
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(seed, {count, channels}));
  if (!special) return x;
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 4) = 0;
  xt::view(x, 5) = 2 * xt::view(x, 0);
  return x;
}

/// The largest difference, in units of the largest entry.
template <typename A, typename B>
double difference(const A& computed, const B& exact) {
  REQUIRE(computed.shape() == exact.shape());
  return xt::amax(xt::abs(computed - exact))() / xt::amax(xt::abs(exact))();
}

void check_against_cpu(const Network& network, const xt::xarray<double>& x1, const xt::xarray<double>& x2,
                       double most) {
  const auto n1 = static_cast<Index>(x1.shape(0)), n2 = static_cast<Index>(x2.shape(0));
  for (const int wanted : {0, 1, 2}) {
    CAPTURE(wanted);
    const auto cotangents = [&](Index rows, Index columns) {
      KernelCotangents<double> both{cotangent(3, rows, columns), cotangent(4, rows, columns)};
      if (wanted == 1) both.nngp = {};
      if (wanted == 2) both.ntk = {};
      return both;
    };
    const auto of_two = cotangents(n1, n2), of_one = cotangents(n1, n1);
    const auto exact = gram_vjp<double>(network, x1, x2, of_two);
    const auto found = gram_vjp<double>(network, x1, x2, of_two, RunControl{}, "pocl");
    CHECK(difference(found.x1, exact.x1) < most);
    CHECK(difference(found.x2, exact.x2) < most);
    CHECK(difference(gram_vjp<double>(network, x1, of_one, RunControl{}, "pocl"),
                     gram_vjp<double>(network, x1, of_one)) < most);
  }
}

TEST_CASE("derivatives of vectors on a device are those of the CPU") {
  const std::vector<std::string> networks = {
      twice(R"("relu")"),
      R"({"layer": "dense"}, {"layer": "abs"}, {"layer": "dense"})",
      R"({"layer": "dense"}, {"layer": "sum", "branches": [{"layers": [{"layer": "relu"}, {"layer": "dropout", "keep": 0.8},
         {"layer": "dense"}]}, {"layers": []}]}, {"layer": "layer_norm"}, {"layer": "erf"}, {"layer": "dense"})",
      R"({"layer": "product", "branches": [{"layers": [{"layer": "dense"}, {"layer": "gelu"}]},
         {"layers": [{"layer": "rms_norm"}, {"layer": "dense"}]}, {"layers": [{"layer": "dense"}, {"layer": "relu"},
         {"layer": "dense"}]}]}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"})",
      R"({"layer": "dense", "parametrisation": "standard", "input_width": 6}, {"layer": "erf"}, {"layer": "dense"})",
      R"({"layer": "dense"}, {"layer": "exp_normalized"}, {"layer": "dense"})",
      R"({"layer": "dense"}, {"layer": "dense"})"};
  for (const std::string& layers : networks) {
    CAPTURE(layers);
    check_against_cpu(network_of(layers), vectors(7, 23, 6), vectors(8, 11, 6), 1e-13);
  }
}

TEST_CASE("derivatives of every nonlinearity with a formula") {
  for (const std::string nonlinearity :
       {R"("leaky_relu", "slope": 0.1)", R"("ab_relu", "a": -0.3, "b": 0.9)", R"("identity")", R"("erf")",
        R"("gelu")", R"("sin", "c": 0.3)", R"("exp", "b": 0.2)", R"("gaussian", "b": -0.5)", R"("rbf")",
        R"("polynomial", "coefficients": [0.3, 1, -0.3])", R"("rectified_monomial", "degree": 2)",
        R"("gabor")", R"("matern", "smoothness": 1.5)", R"("matern", "smoothness": 2.5, "length": 0.7)"}) {
    CAPTURE(nonlinearity);
    check_against_cpu(network_of(twice(nonlinearity)), vectors(5, 17, 5), vectors(6, 9, 5), 1e-12);
  }
}

TEST_CASE("derivatives in float, and near ties in double") {
  const Network network = network_of(twice(R"("relu")"));
  for (const bool special : {false, true}) {
    CAPTURE(special);
    const xt::xarray<double> x1 = vectors(17, 30, 40, special), x2 = vectors(18, 20, 40, special);
    const KernelCotangents<double> exact{cotangent(3, 30, 20), cotangent(4, 30, 20)};
    const KernelCotangents<float> narrow{exact.nngp.cast<float>(), exact.ntk.cast<float>()};
    const KernelCotangents<double> rounded{narrow.nngp.cast<double>(), narrow.ntk.cast<double>()};
    const xt::xarray<float> f1 = xt::cast<float>(x1), f2 = xt::cast<float>(x2);
    const auto found = gram_vjp<float>(network, f1, f2, narrow, RunControl{}, "pocl");
    const auto wanted = gram_vjp<double>(network, x1, x2, rounded);
    CHECK(difference(found.x1, wanted.x1) < 2e-6);
    CHECK(difference(found.x2, wanted.x2) < 2e-6);
  }
}

TEST_CASE("derivatives on a device: one side alone, any threads, all pairs are counted") {
  const Network network = network_of(twice(R"("erf")"));
  const xt::xarray<double> x1 = vectors(27, 90, 4), x2 = vectors(28, 70, 4);
  const KernelCotangents<double> weights{cotangent(1, 90, 70), cotangent(2, 90, 70)};
  RunControl one;
  one.threads = 1;
  const auto both = gram_vjp<double>(network, x1, x2, weights, RunControl{}, "pocl");
  const auto alone = gram_vjp<double>(network, x1, x2, weights, VjpInputs::x2, one, "pocl");
  CHECK(alone.x1.dimension() == 0);
  CHECK(alone.x2 == both.x2);
  std::ptrdiff_t last = 0, total = 0;
  one.progress = [&](std::ptrdiff_t done, std::ptrdiff_t of) {
    last = done;
    total = of;
  };
  const KernelCotangents<double> of_one{cotangent(1, 90, 90), {}};
  static_cast<void>(gram_vjp<double>(network, x1, of_one, one, "pocl"));
  CHECK(total == 90 * 91 / 2);
  CHECK(last == total);
}

TEST_CASE("devices name the layers whose derivatives they do not compute") {
  const KernelCotangents<double> weights{cotangent(1, 2, 2), {}};
  const auto message = [&](const std::string& layers, const xt::xarray<double>& x) {
    return error_message<DeviceError>(
        [&] { static_cast<void>(gram_vjp<double>(network_of(layers), x, weights, RunControl{}, "pocl")); });
  };
  CHECK(
      message(
          R"({"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}, {"layer": "dense"})",
          random_inputs(3, {2, 4, 1}))
          .find("(conv) has positions") != std::string::npos);
  CHECK(message(R"({"layer": "dense"}, {"layer": "tanh"}, {"layer": "dense"})", random_inputs(3, {2, 4}))
            .find("layers[1] (tanh) has a dual by quadrature") != std::string::npos);
  CHECK(message(R"({"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"})", random_inputs(3, {2, 4})) ==
        "no error");
}

}  // namespace
}  // namespace widelimit::testing::device_vjp_test
