// Networks of vectors on a device, against the CPU engine: everything there is one number for a pair.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/backends/device/device_comparison.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_vectors_test {
namespace {

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

std::string dense(int depth, const std::string& nonlinearity = R"("relu")") {
  std::string layers = R"({"layer": "dense", "weight_variance": 2, "bias_variance": 0.01})";
  for (int i = 0; i < depth; ++i)
    layers += R"(, {"layer": )" + nonlinearity +
              R"(}, {"layer": "dense", "weight_variance": 2, "bias_variance": 0.01})";
  return layers;
}

/// Numbers of floats: equal vectors, opposed ones, one that is 0, multiples, and two of similar directions.
xt::xarray<double> vectors_of(Index count, Index channels) {
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(7, {count, channels}));
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 4) = 0;
  xt::view(x, 5) = 3 * xt::view(x, 0);
  xt::view(x, 6) = xt::view(x, 3);
  x(6, 0) += 0.25;
  xt::view(x, count - 1) = xt::view(x, 0);
  return xt::cast<double>(xt::cast<float>(x));
}

TEST_CASE("kernels of vectors on a device are those of the CPU") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"dense layers", dense(3)},
      {"without biases",
       R"({"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}, {"layer": "abs"}, {"layer": "dense"})"},
      {"a skip connection, dropout and norms",
       R"({"layer": "dense"}, {"layer": "sum", "branches": [{"layers": [{"layer": "relu"}, {"layer": "dropout", "keep": 0.8},
          {"layer": "dense"}]}, {"layers": []}]}, {"layer": "layer_norm"}, {"layer": "erf"}, {"layer": "dense"})"},
      {"a product of the input with itself behind a norm",
       R"({"layer": "product", "branches": [{"layers": [{"layer": "dense"}, {"layer": "gelu"}]},
          {"layers": [{"layer": "rms_norm"}, {"layer": "dense"}]}]}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"})"},
      {"only dense layers", R"({"layer": "dense"}, {"layer": "dense"})"}};
  for (const auto& [name, layers] : cases)
    for (const Index channels : {1, 3, 40}) {
      CAPTURE(name);
      CAPTURE(channels);
      const xt::xarray<double> x = vectors_of(70, channels);
      const Inputs<double> first(x), second(xt::xarray<double>(xt::view(x, xt::range(2, 20))));
      // Numbers of one channel are multiples of each other, or nearly equal behind a bias: see below.
      if (channels > 1) check_against_cpu<float>(network_of(layers), first, second, 3e-6);
      check_against_cpu<double>(network_of(layers), first, second, 1e-12);
    }
}

TEST_CASE("every nonlinearity on vectors of a device, multiples among them") {
  const Inputs<double> x(vectors_of(20, 5));
  for (const std::string nonlinearity :
       {R"("relu")", R"("leaky_relu", "slope": 0.1)", R"("ab_relu", "a": -0.3, "b": 0.9)", R"("abs")",
        R"("identity")", R"("erf")", R"("gelu")", R"("sin", "c": 0.3)", R"("exp", "b": 0.4)",
        R"("gaussian", "b": -0.5)", R"("rbf")", R"("polynomial", "coefficients": [0.3, 1, -0.3])",
        R"("rectified_monomial", "degree": 2)", R"("sign")", R"("gabor")", R"("matern", "smoothness": 1.5)",
        R"("matern", "smoothness": 2.5, "length": 0.7)", R"("matern", "smoothness": 0.5)"}) {
    CAPTURE(nonlinearity);
    // The angle of a jump has an infinite slope at correlation 1, and the Laplace kernel at equal inputs, so that a
    // rounding of c costs half of the digits.
    const bool jumps =
        nonlinearity == R"("sign")" || nonlinearity.find(R"("smoothness": 0.5)") != std::string::npos;
    const Network network =
        network_of(R"({"layer": "dense"}, {"layer": )" + nonlinearity +
                   R"(}, {"layer": "dense"}, {"layer": )" + nonlinearity + R"(}, {"layer": "dense"})");
    check_against_cpu<float>(network, x, x, jumps ? 1e-3 : 3e-6);
    check_against_cpu<double>(network, x, x, jumps ? 1e-7 : 1e-12);
  }
}

TEST_CASE("long vectors and images that are flattened first") {
  xt::xarray<double> x = vectors_of(12, 3072);
  // Similar directions, where an error of the product is magnified.
  for (Index i = 6; i < 11; ++i)
    xt::view(x, i) =
        xt::view(x, 3) + 0.02 * static_cast<double>(i) * random_inputs(static_cast<unsigned>(i), {3072});
  const Inputs<double> first(xt::xarray<double>(xt::cast<double>(xt::cast<float>(x))));
  check_against_cpu<float>(network_of(dense(4)), first, first, 3e-6);
  x.reshape({12, 32, 32, 3});
  const Inputs<double> images(xt::xarray<double>(xt::cast<double>(xt::cast<float>(x))));
  check_against_cpu<double>(network_of(R"({"layer": "flatten"}, )" + dense(2)), images, images, 1e-12);
}

TEST_CASE("nearly equal vectors lose no more digits than on the CPU") {
  for (const Index channels : {1, 2, 30, 500}) {
    CAPTURE(channels);
    xt::xarray<double> x = vectors_of(30, channels);
    for (Index i = 7; i < 29; ++i) {
      xt::view(x, i) = xt::view(x, 3);
      x(i, 0) += std::ldexp(1.0, static_cast<int>(-i / 2));
    }
    const Inputs<double> inputs(xt::xarray<double>(xt::cast<double>(xt::cast<float>(x))));
    for (const bool biases : {true, false}) {
      const Network network = network_of(
          biases
              ? dense(2)
              : R"({"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"})");
      const auto exact = gram(network, inputs), own = gram_diagonal(network, inputs);
      const auto on_cpu = gram(network, in_float(inputs)),
                 computed = gram(network, in_float(inputs), on_device());
      const auto error = [&](const auto& of) { return difference(of, exact.ntk, own.ntk, own.ntk); };
      CHECK(error(computed.ntk) < std::max(3e-6, 2 * error(on_cpu.ntk)));
      CHECK(difference(computed.nngp, exact.nngp, own.nngp, own.nngp) < 3e-6);
    }
  }
}

TEST_CASE("entries of vectors do not depend on the batch, threads or the kernels that are asked for") {
  const Network network = network_of(dense(2));
  const xt::xarray<float> numbers = xt::cast<float>(vectors_of(300, 20));
  const Inputs<float> x(numbers);
  const auto whole = gram(network, x, on_device());
  GramOptions options = on_device();
  options.threads = 1;
  options.state_memory_bytes = 1;
  CHECK(gram(network, x, options).ntk == whole.ntk);
  CHECK(gram(network, x, x, on_device()).ntk == whole.ntk);
  CHECK(gram(network, x, on_device(Kernels::nngp)).nngp == whole.nngp);
  CHECK(gram_diagonal(network, x, on_device()).ntk.col(0) == whole.ntk.diagonal());
  const Inputs<float> last(xt::xarray<float>(xt::view(numbers, xt::range(290, 300))));
  CHECK(gram(network, last, on_device()).ntk == whole.ntk.bottomRightCorner(10, 10));
  GramTiles<float> tiles(network, x, on_device());
  CHECK(tiles.compute({0, 256}, {256, 300}).ntk == whole.ntk.block(0, 256, 256, 44));
  // Equal vectors have equal kernels, bit by bit, in either order.
  CHECK(whole.ntk(0, 1) == whole.ntk(0, 0));
  CHECK(whole.ntk(1, 3) == whole.ntk(0, 3));
  CHECK(whole.ntk(0, 299) == whole.ntk(0, 0));
}

TEST_CASE("networks that are computed in double because they are deep") {
  const Inputs<double> x(vectors_of(8, 6));
  const Network network = network_of(dense(30));
  const auto exact = gram(network, x);
  const auto own = gram_diagonal(network, x);
  const auto computed = gram(network, as<float>(x), on_device());
  CHECK(difference(computed.nngp, exact.nngp, own.nngp, own.nngp) < 3e-7);
  CHECK(difference(computed.ntk, exact.ntk, own.ntk, own.ntk) < 3e-7);
}

TEST_CASE("what devices cannot compute of vectors is an error that names the layer") {
  const Inputs<float> x(xt::xarray<float>(xt::ones<float>({2, 4})));
  const std::string growing = error_message<DeviceError>(
      [&] { return gram(network_of(dense(1, R"("gaussian", "b": 0.01)")), x, on_device()); });
  CHECK(growing.find("layers[1] (gaussian) has a formula that devices cannot read") != std::string::npos);
  CHECK(growing.find("choose the device cpu") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::device_vectors_test
