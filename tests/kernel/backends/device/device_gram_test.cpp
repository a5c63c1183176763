// Gram matrices from a device against those of the CPU engine. The device is PoCL's, which executes OpenCL on the CPU:
// there is one wherever these tests run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/backends/device/device_comparison.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_gram_test {
namespace {

constexpr double float_error = 3e-6, double_error = 1e-12;

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

/// Numbers of floats: equal inputs, opposed ones, one that is 0, and one that is twice another.
xt::xarray<double> inputs_of(std::vector<Index> shape) {
  shape.insert(shape.begin(), 7);
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(5, shape));
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 4) = 0;
  xt::view(x, 5) = 2 * xt::view(x, 0);
  return x;
}

struct NetworkCase {
  std::string name;
  std::string layers;
  std::vector<Index> shape;
};

const std::string conv =
    R"({"layer": "conv", "filter": [3, 3], "weight_variance": 2, "bias_variance": 0.01},)";
const std::string gap = R"({"layer": "global_average_pool"}, {"layer": "dense"})";
const std::string flatten =
    R"({"layer": "flatten"}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"})";

std::vector<NetworkCase> network_cases() {
  return {
      {"convolutions", conv + R"({"layer": "relu"},)" + conv + R"({"layer": "relu"},)" + gap, {6, 5, 3}},
      {"a flattened image, and layers after it", conv + R"({"layer": "relu"},)" + flatten, {5, 4, 2}},
      {"strides of odd sizes",
       R"({"layer": "conv", "filter": [3, 2], "strides": [2, 1]}, {"layer": "relu"},)" + conv +
           R"({"layer": "relu"},)" + gap,
       {7, 4, 2}},
      {"strides of even sizes",
       R"({"layer": "conv", "filter": [3, 3], "strides": [2, 2]}, {"layer": "relu"},)" + conv +
           R"({"layer": "relu"},)" + gap,
       {6, 6, 2}},
      {"windows within the border",
       R"({"layer": "conv", "filter": [2, 3], "padding": "valid"}, {"layer": "relu"},)" + gap,
       {5, 6, 2}},
      {"a skip connection, a norm and a product",
       conv +
           R"({"layer": "sum", "branches": [{"layers": [{"layer": "relu"}, {"layer": "conv", "filter": [3, 3]}]},
                                               {"layers": []}]}, {"layer": "layer_norm"}, {"layer": "relu"},)" +
           gap,
       {4, 5, 2}},
      {"a volume",
       R"({"layer": "conv", "filter": [2, 3, 2], "strides": [2, 1, 1]}, {"layer": "relu"},)" + gap,
       {3, 4, 3, 2}},
      {"a sequence with dropout, summed up",
       R"({"layer": "conv", "filter": [4]}, {"layer": "abs"}, {"layer": "dropout", "keep": 0.7},
          {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_sum_pool"}, {"layer": "dense"}, {"layer": "erf"})",
       {9, 2}},
      {"poolings inside",
       conv + R"({"layer": "relu"}, {"layer": "average_pool", "window": [2, 2], "strides": [2, 2]},)" + conv +
           R"({"layer": "relu"}, {"layer": "sum_pool", "window": [2, 3], "strides": [1, 2], "padding": "same"},)" +
           conv + R"({"layer": "relu"},)" + gap,
       {6, 8, 2}},
      {"a pooling before flatten",
       conv + R"({"layer": "relu"}, {"layer": "average_pool", "window": [3, 2], "strides": [2, 1]},)" + conv +
           R"({"layer": "relu"},)" + flatten,
       {7, 6, 2}},
      {"a pooling of everything, and layers after it",
       conv + R"({"layer": "relu"}, {"layer": "average_pool", "window": [4, 5]},)" + conv +
           R"({"layer": "relu"},)" + flatten,
       {4, 5, 2}},
      {"windows that go around the border",
       R"({"layer": "conv", "filter": [3, 2], "padding": "circular"}, {"layer": "relu"},
          {"layer": "conv", "filter": [3, 3], "padding": "circular", "strides": [2, 1]}, {"layer": "relu"},)" +
           gap,
       {5, 4, 2}},
      {"a result that a pooling and a layer read",
       conv +
           R"({"layer": "relu"}, {"layer": "sum", "branches": [{"layers": [{"layer": "average_pool", "window": [3, 3], "strides": [1, 1], "padding": "same"}, {"layer": "dense"}]},
                                               {"layers": [)" +
           conv + R"({"layer": "relu"}]}]},)" + conv + R"({"layer": "relu"},)" + gap,
       {5, 4, 2}},
      {"maps of positions",
       conv + R"({"layer": "relu"}, {"layer": "slice", "begin": [1, 0], "end": [4, 3]},)" + conv +
           R"({"layer": "relu"}, {"layer": "average_pool", "window": [2, 2], "strides": [1, 1], "padding": "circular"},)" +
           conv +
           R"({"layer": "relu"}, {"layer": "conv_transpose", "filter": [3, 2], "strides": [2, 1]}, {"layer": "relu"},)" +
           gap,
       {5, 4, 2}},
      {"weights of their own at each position",
       R"({"layer": "local_conv", "filter": [3, 2], "bias_variance": 0.1}, {"layer": "relu"},
          {"layer": "local_conv", "filter": [2, 2], "padding": "circular"}, {"layer": "relu"},
          {"layer": "local_conv", "filter": [2, 1], "strides": [2, 1], "padding": "valid", "parametrisation": "standard",
           "input_width": 2, "bias_variance": 0.3}, {"layer": "relu"},)" +
           gap,
       {5, 4, 2}},
      {"norms over some axes",
       conv + R"({"layer": "layer_norm", "axes": ["channels", 1]}, {"layer": "relu"},)" + conv +
           R"({"layer": "rms_norm", "axes": ["channels", 0], "epsilon": 0.1}, {"layer": "relu"},)" + gap,
       {5, 4, 2}},
      {"many channels", R"({"layer": "conv", "filter": [3]}, {"layer": "relu"},)" + gap, {6, 40}}};
}

TEST_CASE("kernels of a device are those of the CPU") {
  for (const NetworkCase& of : network_cases()) {
    CAPTURE(of.name);
    const Network network = network_of(of.layers);
    const xt::xarray<double> x = inputs_of(of.shape);
    const Inputs<double> first(x), second(xt::xarray<double>(xt::view(x, xt::range(2, 5))));
    check_against_cpu<float>(network, first, second, float_error);
    check_against_cpu<double>(network, first, second, double_error);
  }
}

/// Nonlinearities side by side: compiling takes longer than all else here, and one program has them all.
void check_nonlinearities(const std::vector<std::string>& some, double most_float, double most_double) {
  const Inputs<double> x(inputs_of({5, 2}));
  std::string branches;
  for (const std::string& nonlinearity : some)
    branches += std::string(branches.empty() ? "" : ",") + R"({"layers": [{"layer": )" + nonlinearity +
                R"(}, {"layer": "conv", "filter": [2]}]})";
  CAPTURE(branches);
  const Network network = network_of(R"({"layer": "conv", "filter": [3]}, {"layer": "sum", "branches": [)" +
                                     branches + R"(]}, {"layer": "relu"},)" + gap);
  check_against_cpu<float>(network, x, x, most_float);
  check_against_cpu<double>(network, x, x, most_double);
}

TEST_CASE("a device has every nonlinearity whose formula can be read") {
  // Those of one sum have results of one size.
  for (const std::vector<std::string>& some : std::vector<std::vector<std::string>>{
           {R"("relu")", R"("leaky_relu", "slope": 0.1)", R"("ab_relu", "a": -0.3, "b": 0.9)"},
           {R"("abs")", R"("identity")", R"("gelu")"},
           {R"("erf")", R"("erf", "a": 1.2, "b": 0.7, "d": 0.1)", R"("sigmoid_like")"},
           {R"("sin", "c": 0.3)", R"("cos")", R"("rbf")"},
           {R"("exp", "b": 0.4)", R"("gaussian", "b": -0.5)", R"("gabor")"},
           {R"("polynomial", "coefficients": [0.3, 1, -0.3])", R"("hermite", "degree": 3)"},
           {R"("monomial", "degree": 3)", R"("rectified_monomial", "degree": 2)"}})
    check_nonlinearities(some, float_error, double_error);
  // The angle of a jump has an infinite slope at correlation 1, so that a rounding of c costs half of the digits.
  check_nonlinearities({R"("sign")", R"("rectified_monomial", "degree": 0)"}, 1e-3, 1e-7);
}

TEST_CASE("inputs of several shapes meet on a device") {
  const Network network = network_of(
      R"({"layer": "conv", "filter": [3], "strides": [2]}, {"layer": "relu"}, {"layer": "conv", "filter": [2]},
                    {"layer": "relu"},)" +
      gap);
  std::vector<xt::xarray<double>> sequences;
  for (const Index length : {5, 8, 6, 5})
    sequences.push_back(random_inputs(static_cast<unsigned>(length), {length, 2}));
  check_against_cpu<double>(network, Inputs<double>(sequences), Inputs<double>(sequences), double_error);
}

TEST_CASE("local convolutions of inputs of several shapes, of which no offset is demanded at some") {
  const Network network = network_of(
      R"({"layer": "conv", "filter": [5], "padding": "circular"},
         {"layer": "product", "branches": [
           {"layers": [{"layer": "relu"}, {"layer": "conv", "filter": [4], "padding": "circular"}, {"layer": "conv", "filter": [3]}]},
           {"layers": [{"layer": "relu"}, {"layer": "local_conv", "filter": [3], "padding": "circular"}]}]},
         {"layer": "local_conv", "filter": [7], "strides": [2]}, {"layer": "rms_norm"},
         {"layer": "sum_pool", "window": [2], "strides": [1]},)" +
      gap);
  std::vector<xt::xarray<double>> sequences;
  for (const Index length : {5, 12, 6})
    sequences.push_back(random_inputs(static_cast<unsigned>(length), {length, 2}));
  check_against_cpu<double>(network, Inputs<double>(sequences), Inputs<double>(sequences), double_error);
}

TEST_CASE("inputs of several shapes are pooled, and go around their borders") {
  const Network network = network_of(
      R"({"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "average_pool", "window": [3], "strides": [2], "padding": "same"},
         {"layer": "conv", "filter": [3], "padding": "circular"}, {"layer": "relu"},)" +
      gap);
  std::vector<xt::xarray<double>> sequences;
  for (const Index length : {5, 8, 1})
    sequences.push_back(random_inputs(static_cast<unsigned>(length), {length, 2}));
  check_against_cpu<double>(network, Inputs<double>(sequences), Inputs<double>(sequences), double_error);
}

TEST_CASE("entries of a device do not depend on tiles, threads or the kernels that are asked for") {
  const std::string relu = conv + R"({"layer": "relu"},)";
  for (const std::string& layers :
       {relu + gap, relu + R"({"layer": "average_pool", "window": [2, 2]},)" + relu + gap}) {
    CAPTURE(layers);
    const Network network = network_of(layers);
    const Inputs<float> x(xt::xarray<float>(xt::cast<float>(inputs_of({5, 5, 2}))));
    const auto whole = gram(network, x, on_device());
    GramOptions options = on_device();
    options.tile_size = 2;
    options.threads = 1;
    CHECK(gram(network, x, options).ntk == whole.ntk);
    options.state_memory_bytes = 1;
    CHECK(gram(network, x, options).ntk == whole.ntk);
    // With the sides exchanged, a pooling adds up in another order, as on the CPU.
    const auto upper = [](const Matrix<float>& matrix) -> Matrix<float> {
      return matrix.triangularView<Eigen::Upper>();
    };
    CHECK(upper(gram(network, x, x, on_device()).ntk) == upper(whole.ntk));
    CHECK(gram(network, x, on_device(Kernels::nngp)).nngp == whole.nngp);
    CHECK(gram_diagonal(network, x, on_device()).ntk.col(0) == whole.ntk.diagonal());
    CHECK(gram_diagonal(network, x, on_device()).nngp.col(0) == whole.nngp.diagonal());
    // Equal inputs have equal kernels, bit by bit.
    CHECK(whole.ntk(0, 1) == whole.ntk(0, 0));
    CHECK(whole.ntk(1, 3) == whole.ntk(0, 3));
  }
}

TEST_CASE("a device gives flatten equal positions only, whatever else is demanded") {
  const Network network = network_of(conv + R"({"layer": "relu"},)" + flatten);
  const Inputs<float> x(xt::xarray<float>(xt::cast<float>(inputs_of({5, 4, 2}))));
  GramOptions everything = on_device();
  everything.demand = GramOptions::Demand::everything;
  const auto whole = gram(network, x, everything), minimal = gram(network, x, on_device());
  CHECK(whole.nngp == minimal.nngp);
  CHECK(whole.ntk == minimal.ntk);
}

TEST_CASE("what devices cannot compute is an error that names the layer") {
  const Inputs<float> x(xt::xarray<float>(xt::ones<float>({2, 4, 4, 2})));
  const auto error_of = [&](const std::string& layers, const GramOptions& options) {
    return error_message<DeviceError>([&] { return gram(network_of(layers), x, options); });
  };
  const std::string growing =
      error_of(conv + R"({"layer": "gaussian", "b": 0.01},)" + conv + gap, on_device());
  CHECK(growing.find("layers[1] (gaussian) has a formula that devices cannot read") != std::string::npos);
  CHECK(growing.find("choose the device cpu") != std::string::npos);
  GramOptions unknown = on_device();
  unknown.device = "abacus";
  const std::string none = error_of(conv + gap, unknown);
  CHECK(none.find("expected a device that answers to \"abacus\"") != std::string::npos);
  CHECK(none.find("Portable Computing Language") != std::string::npos);
  const std::string positions = error_message<DeviceError>(
      [&] { return position_covariances(network_of(conv + R"({"layer": "relu"})"), x, 0, 1, on_device()); });
  CHECK(positions.find("covariances of positions are computed on the CPU only") != std::string::npos);
}

TEST_CASE("devices are listed, and the CPU engine answers to cpu in any case") {
  const std::vector<DeviceDescription> all = devices();
  const auto pocl = std::find_if(all.begin(), all.end(), [](const DeviceDescription& device) {
    return device.platform == "Portable Computing Language";
  });
  REQUIRE(pocl != all.end());
  CHECK(pocl->has_double);
  CHECK(pocl->memory_bytes > 0);
  CHECK(device_in_full("POCL").find(pocl->name) == 0);
  CHECK(device_in_full("").empty());
  CHECK(device_in_full("CPU").empty());
}

}  // namespace
}  // namespace widelimit::testing::device_gram_test
