// Parameters at the edges of float on a device, of every layer that devices compute: what float cannot hold is an
// error that names the layer, and everything else is what the CPU computes. Formulas, chains, maps, attention and
// readouts together.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernel/backends/device/device_comparison.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_range_test {
namespace {

const std::string none = "no error";

const std::vector<double> edges{1e-320, 1e-46, 1e-20, 1e20, 1e39, 1e200};

/// A layer with one number to be chosen.
const std::vector<std::string> layers_of_vectors{
    R"({{"layer": "dense", "weight_variance": {0}}})",
    R"({{"layer": "dense", "bias_variance": {0}}})",
    R"({{"layer": "rms_norm", "epsilon": {0}}})",
    R"({{"layer": "layer_norm", "epsilon": {0}}})",
    R"({{"layer": "leaky_relu", "alpha": {0}}})",
    R"({{"layer": "ab_relu", "a": {0}, "b": 1}})",
    R"({{"layer": "polynomial", "coefficients": [1, {0}]}})",
    R"({{"layer": "polynomial", "coefficients": [{0}, 1, {0}]}})",
    R"({{"layer": "erf", "a": {0}}})",
    R"({{"layer": "erf", "b": {0}}})",
    R"({{"layer": "sin", "a": {0}}})",
    R"({{"layer": "sin", "b": {0}}})",
    R"({{"layer": "cos", "a": {0}, "c": 0.5}})",
    R"({{"layer": "gaussian", "a": {0}}})",
    R"({{"layer": "gaussian", "b": {0}}})",
    R"({{"layer": "exp", "a": {0}}})",
    R"({{"layer": "exp", "b": {0}}})",
    R"({{"layer": "rbf", "gamma": {0}}})"};

const std::vector<std::string> layers_of_positions{
    R"({{"layer": "conv", "filter": [2], "weight_variance": {0}}})",
    R"({{"layer": "conv", "filter": [2], "bias_variance": {0}}})",
    R"({{"layer": "local_conv", "filter": [2], "bias_variance": {0}}})",
    R"({{"layer": "rms_norm", "epsilon": {0}}})",
    R"({{"layer": "polynomial", "coefficients": [1, {0}]}})",
    R"({{"layer": "attention", "scaling": "inverse_width", "query_key_variance": {0}}})",
    R"({{"layer": "attention", "scaling": "inverse_width", "value_output_variance": {0}}})"};

/// The kernels in float of a device, or what is told.
struct Outcome {
  std::string error;  ///< "no error" without one.
  GramResult<float> kernels;
};

Outcome on(const std::string& device, const Network& network, const xt::xarray<float>& x) {
  GramOptions options;
  options.device = device;
  Outcome outcome;
  outcome.error =
      error_message<Error>([&] { return outcome.kernels = gram(network, Inputs<float>(x), options); });
  return outcome;
}

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

void check(const std::string& layers, const xt::xarray<float>& x) {
  CAPTURE(layers);
  // Some layers have no such parameter.
  if (error_message<Error>([&] { return network_of(layers); }) != none) return;
  const Network network = network_of(layers);
  const Outcome device = on("pocl", network, x), cpu = on("cpu", network, x);
  CAPTURE(device.error);
  CAPTURE(cpu.error);
  CHECK(device.error.find("nan") == std::string::npos);
  if (device.error != none) {
    const bool names_layer = device.error.find("layers[1]") != std::string::npos || cpu.error != none;
    CHECK(names_layer);
    return;
  }
  if (cpu.error != none) return;
  for (const auto member : {&GramResult<float>::nngp, &GramResult<float>::ntk}) {
    const Matrix<float>&found = device.kernels.*member, &exact = cpu.kernels.*member;
    for (Index i = 0; i < exact.rows(); ++i)
      for (Index j = 0; j < exact.cols(); ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const double size =
            std::sqrt(std::abs(static_cast<double>(exact(i, i)) * static_cast<double>(exact(j, j))));
        if (!std::isfinite(exact(i, j)) || !std::isfinite(size)) {
          CHECK_FALSE(std::isfinite(found(i, j)));
          continue;
        }
        CHECK(std::isfinite(found(i, j)));
        CHECK(std::abs(found(i, j) - exact(i, j)) <= 1e-5 * size + 1e-37);
      }
  }
}

TEST_CASE("parameters at the edges of float: layers of vectors") {
  const xt::xarray<float> x = random_inputs<float>(3, {4, 3});
  for (const std::string& layer : layers_of_vectors)
    for (const double edge : edges)
      check(R"({"layer": "dense"}, )" + fmt::format(fmt::runtime(layer), edge) + R"(, {"layer": "dense"})",
            x);
}

TEST_CASE("parameters at the edges of float: layers of positions, and readouts") {
  const xt::xarray<float> x = random_inputs<float>(3, {3, 4, 2});
  for (const std::string& layer : layers_of_positions)
    for (const double edge : edges)
      for (const char* readout : {"flatten", "global_average_pool"})
        check(R"({"layer": "conv", "filter": [2]}, )" + fmt::format(fmt::runtime(layer), edge) +
                  fmt::format(R"(, {{"layer": "{}"}})", readout),
              x);
}

TEST_CASE("a parameter beyond float is told with the layer's path, what it is, and what to do") {
  const xt::xarray<float> x = random_inputs<float>(3, {3, 4, 2});
  const auto told = [&](const std::string& layers) { return on("pocl", network_of(layers), x).error; };
  CHECK(
      told(
          R"({"layer": "conv", "filter": [2]}, {"layer": "rms_norm", "epsilon": 1e39}, {"layer": "flatten"})") ==
      "device: layers[1] (rms_norm): the constant 1e+39, made of its parameters, is beyond the range of "
      "float; choose "
      "double precision, or the device cpu");
}

TEST_CASE("moments of rectified powers above 1 are not below 0, on a device and on the CPU, however small") {
  xt::xarray<float> directions = random_inputs<float>(7, {12, 5});
  // Opposites, nearly so, and equal ones.
  for (std::size_t i = 0; i + 1 < 12; i += 2)
    for (std::size_t c = 0; c < 5; ++c)
      directions(i + 1, c) = -directions(i, c) * (1 + 1e-7F * static_cast<float>(i)) +
                             1e-3F * static_cast<float>(i % 3) * directions(0, c);
  for (const int degree : {2, 3, 5})
    for (const float scale : {1.0F, 1e-3F, 1e-6F, 1e-7F, 1e-8F, 4e-9F, 1e-9F, 6e-10F}) {
      const Network network = network_of(
          fmt::format(R"({{"layer": "dense"}}, {{"layer": "rectified_monomial", "degree": {}}})", degree));
      const xt::xarray<float> x = scale * directions;
      for (const char* device : {"pocl", "cpu"}) {
        CAPTURE(device);
        CAPTURE(scale);
        CAPTURE(degree);
        const Outcome outcome = on(device, network, x);
        if (outcome.error == none) CHECK(outcome.kernels.nngp.minCoeff() >= 0);
      }
    }
}

}  // namespace
}  // namespace widelimit::testing::device_range_test
