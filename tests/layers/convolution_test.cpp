#include "widelimit/layers/convolution.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "layers/layer_errors.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("convolutions: variances must be finite and not negative") {
  CHECK(error_of([] {
          return conv({{3}, {}, Padding::same, -1, 0});
        }) == "conv: weight_variance must be finite and not negative, got -1");
  CHECK(error_of([] {
          return local_conv({{3}, {}, Padding::same, 1, -1});
        }) == "local_conv: bias_variance must be finite and not negative, got -1");
}

TEST_CASE("convolutions: pads and dilations must fit the axes") {
  CHECK(error_of([] {
          return conv({.filter = {3, 3}, .pads = {1}});
        }) == "conv: expected one or two pads an axis (2 or 4), got 1");
  CHECK(error_of([] { return local_conv({.filter = {3}, .pads = {-1}}); }) ==
        "local_conv: pads must be from 0 to 1048576, got -1");
  CHECK(error_of([] { return conv({.filter = {3}, .dilations = {0}}); }) ==
        "conv: dilations must be from 1 to 1048576, got 0");
  CHECK(error_of([] {
          return conv({.filter = {3}, .dilations = {1, 2}});
        }) == "conv: expected one dilation an axis (1), got 2");
  CHECK(error_of([] { return local_conv({.filter = {3}, .dilations = {2}}); }) ==
        "local_conv: dilations: expected all 1; conv takes others");
  CHECK(error_of([] { return conv({.filter = {Index{1} << 40}, .dilations = {2}}); }) ==
        "conv: window sizes must be from 1 to 1048576, got 1099511627776");
  CHECK(error_of([] { return conv_transpose({.filter = {3}, .pads = {1}}); }) ==
        "conv_transpose: expected neither pads nor dilations; take padding \"same\", \"valid\" or "
        "\"circular\"");
  const auto x = random_inputs(1, {2, 6, 2});
  CHECK(
      error_message<Error>([&] {
        return gram<double>(Network({conv({.filter = {4}, .pads = {0, 1}, .dilations = {3}}), flatten()}), x);
      })
          .find("layers[0] (conv): axis 0: expected at least 10 positions, those of the padding included, "
                "for a "
                "window that reaches as far, got 7") != std::string::npos);
}

/// Networks that compute the same, however they say it: to the last bit where they become the same graph.
void check_equal(const Layer& found, const Layer& expected, const std::vector<Index>& sizes) {
  const auto x = random_inputs(3, sizes);
  for (const Layer& readout : {global_average_pool(), flatten()}) {
    const auto kernels = [&](const Layer& layer) {
      return gram<double>(Network({layer, relu(), readout, dense()}), x);
    };
    const auto left = kernels(found), right = kernels(expected);
    CHECK((left.nngp - right.nngp).cwiseAbs().maxCoeff() < 1e-14);
    CHECK((left.ntk - right.ntk).cwiseAbs().maxCoeff() < 1e-14);
  }
}

TEST_CASE("convolutions: pads that a named padding has") {
  check_equal(conv({.filter = {3, 5}, .pads = {1, 2}}), conv({.filter = {3, 5}}), {2, 4, 5, 2});
  check_equal(conv({.filter = {2}, .pads = {0, 1}}), conv({.filter = {2}}), {2, 4, 2});
  check_equal(conv({.filter = {3}, .strides = {2}, .pads = {0}}),
              conv({.filter = {3}, .strides = {2}, .padding = Padding::valid}), {2, 7, 2});
  // The zeros of `same` with a stride of 2 and an even size are behind.
  check_equal(conv({.filter = {3}, .strides = {2}, .pads = {0, 1}}), conv({.filter = {3}, .strides = {2}}),
              {2, 6, 2});
  check_equal(local_conv({.filter = {3}, .strides = {2}, .pads = {1, 1}}),
              local_conv({.filter = {3}, .strides = {2}}), {2, 7, 2});
  check_equal(conv({.filter = {3}, .dilations = {1}}), conv({.filter = {3}}), {2, 6, 2});
}

/// PyTorch's Conv1d by its definition, of inputs [n, d, channels]: the sum over taps o of x[s a + dilation o - pad]
/// times that of the other input; all pairs of positions, divided by what weights see.
Matrix<double> covariances(const xt::xarray<double>& x, Index taps, Index stride, Index pad, Index dilation) {
  const auto n = static_cast<Index>(x.shape(0)), d = static_cast<Index>(x.shape(1));
  const Index outputs = (d + 2 * pad - dilation * (taps - 1) - 1) / stride + 1;
  Matrix<double> sum = Matrix<double>::Zero(n * outputs, n * outputs);
  for (Index o = 0; o < taps; ++o) {
    Matrix<double> seen = Matrix<double>::Zero(n * outputs, 2);
    for (Index i = 0; i < n; ++i)
      for (Index a = 0; a < outputs; ++a)
        if (const Index place = stride * a + dilation * o - pad; place >= 0 && place < d)
          for (Index c = 0; c < 2; ++c) seen(i * outputs + a, c) = x(i, place, c);
    sum += seen * seen.transpose();
  }
  return sum / static_cast<double>(2 * taps);
}

TEST_CASE("convolutions: the numbers of PyTorch's padding, stride and dilation") {
  const Index n = 3, d = 9;
  const auto x = random_inputs(5, {n, d, 2});
  for (const Index taps : {1, 2, 3})
    for (const Index stride : {1, 2, 3})
      for (const Index pad : {0, 1, 4})
        for (const Index dilation : {1, 2, 3}) {
          CAPTURE(taps);
          CAPTURE(stride);
          CAPTURE(pad);
          CAPTURE(dilation);
          const Matrix<double> expected = covariances(x, taps, stride, pad, dilation);
          const Index outputs = expected.rows() / n;
          const Layer layer = conv({.filter = {taps},
                                    .strides = {stride},
                                    .weight_variance = 1.3,
                                    .bias_variance = 0.2,
                                    .pads = {pad},
                                    .dilations = {dilation}});
          const auto pooled = gram<double>(Network({layer, global_average_pool()}), x),
                     flat = gram<double>(Network({layer, flatten()}), x);
          for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < n; ++j) {
              const auto block = expected.block(i * outputs, j * outputs, outputs, outputs);
              CHECK(pooled.nngp(i, j) == doctest::Approx(1.3 * block.mean() + 0.2).epsilon(1e-13).scale(1));
              CHECK(flat.nngp(i, j) ==
                    doctest::Approx(1.3 * block.trace() / static_cast<double>(outputs) + 0.2)
                        .epsilon(1e-13)
                        .scale(1));
            }
        }
}

TEST_CASE("convolutions: pads and dilations in network files") {
  const auto read = [](const char* layer) {
    return parse_network(std::string(R"({"widelimit": 1, "layers": [)") + layer +
                         R"(, {"layer": "flatten"}]})");
  };
  const char* text = R"({"layer": "conv", "filter": [3, 3], "pads": [1, 2], "dilations": [2, 1]})";
  const Network network = read(text);
  const auto written = nlohmann::json::parse(to_json(network));
  CHECK(written["layers"][0]["pads"] == nlohmann::json{1, 2});
  CHECK(written["layers"][0]["dilations"] == nlohmann::json{2, 1});
  CHECK_FALSE(written["layers"][0].contains("padding"));
  CHECK(nlohmann::json::parse(to_json(parse_network(written.dump()))) == written);
  CHECK(error_message<Error>([&] {
          return read(R"({"layer": "conv", "filter": [3], "padding": 1})");
        }).find("layers[0].padding: expected one of same, valid, circular; numbers of zeros are \"pads\"") !=
        std::string::npos);
  CHECK(error_message<Error>([&] {
          return read(R"({"layer": "conv", "filter": [3], "padding": "same", "pads": [1]})");
        }).find("layers[0].padding: expected no padding beside pads") != std::string::npos);
  CHECK(error_message<Error>([&] {
          return read(R"({"layer": "conv_transpose", "filter": [3], "dilations": [2]})");
        }).find("layers[0].dilations: unknown field") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing
