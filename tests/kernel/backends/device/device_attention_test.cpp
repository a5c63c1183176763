// Attention on a device against that of the CPU engine: executed, and pulled back from readouts.
#include <doctest/doctest.h>

#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/backends/device/device_comparison.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_attention_test {
namespace {

constexpr double float_error = 3e-6, double_error = 1e-12;

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

const std::string conv =
    R"({"layer": "conv", "filter": [3, 2], "weight_variance": 2, "bias_variance": 0.01},)";
const std::string relu = R"({"layer": "relu"},)";
const std::string attention = R"({"layer": "attention", "query_key_std": 0.8},)";
/// With biases, and encodings in logits and values.
const std::string encoded =
    R"({"layer": "attention", "bias_variance": 0.2, "output_value_variance": 0.7,
        "positions": {"kind": "structured", "rho": 0.8, "phi": 2, "input_weight": 0.6, "position_weight": 0.4, "in_values": true}},)";
const std::string norm = R"({"layer": "layer_norm"},)";
const std::string dense = R"({"layer": "dense", "weight_variance": 1.3, "bias_variance": 0.1})";
const std::string gap = R"({"layer": "global_average_pool"}, {"layer": "dense"})";
const std::string flatten = R"({"layer": "flatten"}, {"layer": "dense"})";

/// Layers beside a skip connection.
std::string beside(const std::string& layers) {
  return R"({"layer": "sum", "branches": [{"layers": []}, {"layers": [)" + layers + "]}]},";
}

struct NetworkCase {
  std::string name;
  std::string layers;
};

std::vector<NetworkCase> network_cases() {
  return {{"attention and flatten", conv + relu + attention + flatten},
          {"attention, norm and flatten", conv + relu + attention + norm + flatten},
          {"attention, norm and averages", conv + relu + encoded + norm + gap},
          {"two attentions beside skip connections, and flatten",
           conv + relu + beside(encoded + dense) + attention + beside(norm + encoded + dense) + flatten},
          {"attention in the middle", conv + relu + encoded + relu + conv + relu + gap},
          {"attention of inputs, and equal positions after it",
           attention + norm + relu + encoded + relu + flatten},
          {"a map and a layer after attention",
           conv + relu + attention + beside(conv + relu + R"({"layer": "dense"})") +
               R"({"layer": "average_pool", "window": [2, 2], "strides": [2, 2]},)" + norm + relu + gap}};
}

/// Smooth images: equal ones, opposed ones, and one that is twice another.
xt::xarray<double> images() {
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(7, {5, 5, 4, 2}));
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 4) = 2 * xt::view(x, 0);
  return x;
}

TEST_CASE("attention on a device is that of the CPU") {
  const xt::xarray<double> x = images();
  const Inputs<double> first(x), second(xt::xarray<double>(xt::view(x, xt::range(2, 4))));
  for (const NetworkCase& of : network_cases()) {
    CAPTURE(of.name);
    const Network network = network_of(of.layers);
    check_against_cpu<float>(network, first, second, float_error);
    check_against_cpu<double>(network, first, second, double_error);
  }
}

/// Attention at 1/sqrt(width).
std::string gaussian(const std::string& weights, const std::string& fields = "") {
  return R"({"layer": "attention", "scaling": "inverse_sqrt_width", "query_key_std": 0.7, "bias_variance": 0.2, "weights": )" +
         weights + fields + "},";
}

const std::string in_logits =
    R"(, "positions": {"kind": "structured", "rho": 0.8, "phi": 2, "input_weight": 0.6, "position_weight": 0.4, "in_values": false})";
const std::string in_values =
    R"(, "positions": {"kind": "identity", "rho": 0.8, "input_weight": 0.6, "position_weight": 0.4, "in_values": true})";
const std::string biases = R"(, "query_bias_variance": 0.3, "key_bias_variance": 0.1)";

TEST_CASE("attention at 1/sqrt(width) on a device is that of the CPU") {
  const xt::xarray<double> x = images();
  const Inputs<double> first(x), second(xt::xarray<double>(xt::view(x, xt::range(2, 4))));
  const std::string front =
      R"({"layer": "conv", "filter": [3, 2], "strides": [2, 2], "weight_variance": 2, "bias_variance": 0.01},)" +
      relu;
  for (const std::string& layers :
       {front + gaussian(R"("identity")", biases) + norm + gaussian(R"("identity")", in_values) + flatten,
        front + gaussian(R"("identity")", R"(, "causal": true)") + gaussian(R"("relu")", in_logits) + flatten,
        front + gaussian(R"("relu")") + gaussian(R"("abs")", biases) + norm + relu + gap,
        front + dense + "," +
            beside(gaussian(R"({"layer": "leaky_relu", "slope": 0.3})", R"(, "causal": true)") + dense) + gap,
        front + gaussian(R"("erf")", biases + in_logits) + gaussian(R"("gelu")") + gap}) {
    CAPTURE(layers);
    const Network network = network_of(layers);
    check_against_cpu<float>(network, first, second, float_error);
    check_against_cpu<double>(network, first, second, double_error);
  }
}

TEST_CASE("attention at 1/sqrt(width) of sequences on a device turns, and sees what its masks say") {
  std::vector<xt::xarray<double>> sequences;
  for (const Index length : {5, 1})
    sequences.push_back(random_inputs(static_cast<unsigned>(length), {length, 2}));
  xt::xarray<bool> mask = xt::ones<bool>({3, 5});
  mask(0, 4) = mask(0, 3) = mask(2, 1) = false;
  const Inputs<double> masked(Inputs<double>(random_inputs(3, {3, 5, 2})), mask);
  const std::string rotary = R"(, "rotary": {"frequencies": [1.0, 0.3]})";
  for (const std::string& layers :
       {gaussian(R"("relu")", rotary) + gaussian(R"("identity")", rotary + R"(, "causal": true)") + gap,
        gaussian(R"("erf")", rotary + R"(, "window": 2)") + gaussian(R"("relu")", biases) + gap}) {
    CAPTURE(layers);
    const Network network = network_of(R"({"layer": "conv", "filter": [2]},)" + layers);
    check_against_cpu<double>(network, Inputs<double>(sequences), Inputs<double>(sequences), double_error);
    check_against_cpu<double>(network, masked, masked, double_error);
  }
}

TEST_CASE("attention of sequences on a device sees what its masks say") {
  const Network network = network_of(
      R"({"layer": "conv", "filter": [2]}, {"layer": "relu"},
         {"layer": "attention", "causal": true, "window": 3, "alibi": 0.3, "bias_variance": 0.1}, {"layer": "relu"},
         {"layer": "attention", "weights": "softmax1"}, {"layer": "layer_norm"},)" +
      gap);
  std::vector<xt::xarray<double>> sequences;
  for (const Index length : {5, 8, 1})
    sequences.push_back(random_inputs(static_cast<unsigned>(length), {length, 2}));
  check_against_cpu<double>(network, Inputs<double>(sequences), Inputs<double>(sequences), double_error);
  xt::xarray<bool> mask = xt::ones<bool>({3, 6});
  mask(0, 5) = mask(0, 4) = mask(2, 3) = false;
  const Inputs<double> masked(Inputs<double>(random_inputs(3, {3, 6, 2})), mask);
  check_against_cpu<double>(network, masked, masked, double_error);
}

TEST_CASE("more positions than a tile of matrix products") {
  // Work-groups multiply squares of 32 positions.
  const xt::xarray<double> x = random_inputs(9, {2, 7, 11, 1});
  for (const std::string& layers : {conv + relu + encoded + relu + gap, conv + relu + encoded + flatten}) {
    CAPTURE(layers);
    check_against_cpu<float>(network_of(layers), Inputs<double>(x), Inputs<double>(x), float_error);
  }
}

TEST_CASE("entries with attention do not depend on tiles, threads or the kernels that are asked for") {
  for (const std::string& layers :
       {conv + relu + encoded + norm + relu + gap, conv + relu + attention + flatten,
        conv + relu + gaussian(R"("relu")") + gaussian(R"("erf")") + norm + relu + gap}) {
    CAPTURE(layers);
    const Network network = network_of(layers);
    const Inputs<float> x(xt::xarray<float>(xt::cast<float>(images())));
    const auto whole = gram(network, x, on_device());
    GramOptions options = on_device();
    options.tile_size = 2;
    options.threads = 1;
    options.state_memory_bytes = 1;
    CHECK(gram(network, x, options).ntk == whole.ntk);
    CHECK(gram(network, x, on_device(Kernels::nngp)).nngp == whole.nngp);
    CHECK(gram_diagonal(network, x, on_device()).ntk.col(0) == whole.ntk.diagonal());
    // Equal inputs have equal kernels, bit by bit.
    CHECK(whole.ntk(0, 1) == whole.ntk(0, 0));
    CHECK(whole.ntk(1, 3) == whole.ntk(0, 3));
  }
}

TEST_CASE("layers between attentions that have formulas of their own") {
  const std::string standard =
      R"({"layer": "conv", "filter": [2, 2], "parametrisation": "standard", "input_width": 2, "bias_variance": 0.3},)";
  const std::string space = R"({"layer": "rms_norm", "axes": ["channels", "space"]},)";
  const Network network =
      network_of(standard + relu + space + attention +
                 R"({"layer": "exp_normalized", "gamma": 0.7, "shift": -0.5},)" + standard + relu + gap);
  const Inputs<double> x(images());
  check_against_cpu<float>(network, x, x, float_error);
  check_against_cpu<double>(network, x, x, double_error);
}

TEST_CASE("attention that devices cannot compute is named") {
  const Inputs<float> x(xt::xarray<float>(xt::cast<float>(images())));
  const auto message_of = [&](const std::string& weights) {
    return error_message<DeviceError>([&] {
      return gram(
          network_of(conv + relu + R"({"layer": "attention", "scaling": "inverse_sqrt_width", "weights": )" +
                     weights + "}," + gap),
          x, on_device());
    });
  };
  const std::string sampled = message_of(R"("softmax")"),
                    growing = message_of(R"({"layer": "gaussian", "b": 0.01})");
  CHECK(sampled.find("layers[2] (attention) has covariances that are needed as a whole") !=
        std::string::npos);
  CHECK(sampled.find("choose the device cpu") != std::string::npos);
  CHECK(growing.find("layers[2] (attention) has weights by a formula that devices cannot read") !=
        std::string::npos);
}

TEST_CASE("logits beyond what a device can do in float are an error that names the layer") {
  const Inputs<float> x(xt::xarray<float>(1e6F * random_inputs<float>(3, {2, 4, 2})));
  const Network network = network_of(R"({"layer": "conv", "filter": [2]},)" + gaussian(R"("erf")") + gap);
  const std::string message =
      error_message<NumericalError>([&] { return gram(network, x, on_device(Kernels::nngp)); });
  CHECK(message.find("layers[1] (attention): expected variances of logits of at most 1e+18") !=
        std::string::npos);
  CHECK(gram(network, x).nngp.allFinite());
}

}  // namespace
}  // namespace widelimit::testing::device_attention_test
