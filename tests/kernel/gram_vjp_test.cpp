// Derivatives of Gram matrices by inputs, against differences of Gram matrices.
#include "widelimit/kernel/gram_vjp.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "kernel/differences.hpp"
#include "kernel/random_networks.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Matrix<double> random_cotangent(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

enum class Wanted { nngp, ntk, both };

KernelCotangents<double> random_cotangents(unsigned seed, Index rows, Index columns, Wanted wanted) {
  KernelCotangents<double> cotangents;
  if (wanted != Wanted::ntk) cotangents.nngp = random_cotangent(seed, rows, columns);
  if (wanted != Wanted::nngp) cotangents.ntk = random_cotangent(seed + 1, rows, columns);
  return cotangents;
}

std::vector<Index> batch_of(Index size, const Shape& shape, Index channels) {
  std::vector<Index> dimensions{size};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(channels);
  return dimensions;
}

/// All three functions, for the NNGP, the NTK and both.
void check_by_differences(const Network& network, const Shape& shape, Index channels = 2,
                          double tolerance = 1e-7) {
  std::ostringstream printed;
  printed << network;
  CAPTURE(printed.str());
  const auto x1 = random_inputs(11, batch_of(2, shape, channels)),
             x2 = random_inputs(12, batch_of(3, shape, channels));
  unsigned seed = 21;
  for (const Wanted wanted : {Wanted::nngp, Wanted::ntk, Wanted::both}) {
    CAPTURE(static_cast<int>(wanted));
    const auto weights = random_cotangents(seed++, 2, 3, wanted);
    const GramVjp<double> gradient = gram_vjp<double>(network, x1, x2, weights);
    CHECK(worst_difference(x1, gradient.x1, [&](const auto& x) {
            return weighted_sum(weights, gram<double>(network, x, x2));
          }) < tolerance);
    CHECK(worst_difference(x2, gradient.x2, [&](const auto& x) {
            return weighted_sum(weights, gram<double>(network, x1, x));
          }) < tolerance);
    const auto symmetric = random_cotangents(seed++, 3, 3, wanted);
    CHECK(worst_difference(x2, gram_vjp<double>(network, x2, symmetric), [&](const auto& x) {
            return weighted_sum(symmetric, gram<double>(network, x));
          }) < tolerance);
    const auto diagonal = random_cotangents(seed++, 3, 1, wanted);
    CHECK(worst_difference(x2, gram_diagonal_vjp<double>(network, x2, diagonal), [&](const auto& x) {
            return weighted_sum(diagonal, gram_diagonal<double>(network, x));
          }) < tolerance);
  }
}

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

const std::string dense_text = R"({"layer": "dense", "weight_variance": 1.5, "bias_variance": 0.05})";
const std::string relu_text = R"({"layer": "relu"})";
const std::string gap_text = R"({"layer": "global_average_pool"})";

std::string conv_text(const std::string& more = "") {
  return R"({"layer": "conv", "filter": [3, 3], "weight_variance": 1.7, "bias_variance": 0.1)" + more + "}";
}

std::string joined(const std::vector<std::string>& layers) {
  std::string text;
  for (const std::string& layer : layers) text += (text.empty() ? "" : ", ") + layer;
  return text;
}

}  // namespace

TEST_CASE("gram_vjp: networks of vectors") {
  const auto check = [](const std::vector<std::string>& layers) {
    check_by_differences(network_of(joined(layers)), {}, 5);
  };
  check({dense_text, relu_text, dense_text, relu_text, dense_text});
  check({dense_text, R"({"layer": "layer_norm"})", relu_text, dense_text, R"({"layer": "erf"})", dense_text});
  check({R"({"layer": "layer_norm"})", dense_text, relu_text, dense_text});
  check({R"({"layer": "rms_norm", "epsilon": 0.3})", dense_text, relu_text, dense_text});
  check({dense_text,
         R"({"layer": "sum", "branches": [{"layers": []}, {"scale": 0.7, "layers": [)" + relu_text + ", " +
             dense_text + "]}]}",
         R"({"layer": "product", "branches": [{"layers": [)" + joined({dense_text, relu_text, dense_text}) +
             R"(]}, {"layers": [)" + joined({dense_text, R"({"layer": "gelu"})"}) + "]}]}",
         dense_text});
  check({R"({"layer": "dense", "parametrisation": "standard", "input_width": 5, "bias_variance": 0.2})",
         relu_text, R"({"layer": "dense", "parametrisation": "standard", "input_width": 64})"});
  check({dense_text, relu_text, R"({"layer": "dropout", "keep": 0.7})", dense_text, relu_text, dense_text});
}

TEST_CASE("gram_vjp: windows, poolings and readouts") {
  const auto check = [](const std::vector<std::string>& layers, const Shape& shape) {
    check_by_differences(network_of(joined(layers)), shape);
  };
  check({conv_text(), relu_text, conv_text(), relu_text, gap_text, dense_text}, {4, 3});
  check({conv_text(), relu_text, gap_text, dense_text, relu_text, dense_text}, {4, 3});
  check({conv_text(R"(, "padding": "valid")"), relu_text, conv_text(R"(, "strides": [2, 1])"), relu_text,
         R"({"layer": "flatten"})", dense_text},
        {5, 4});
  check({conv_text(R"(, "padding": "circular")"), relu_text,
         conv_text(R"(, "padding": "circular", "strides": [2, 1])"), relu_text, gap_text},
        {4, 3});
  check({conv_text(), relu_text, R"({"layer": "average_pool", "window": [2, 2]})", conv_text(), relu_text,
         R"({"layer": "sum_pool", "window": [3, 3], "strides": [2, 1], "padding": "same"})", gap_text,
         dense_text},
        {4, 4});
  check({R"({"layer": "local_conv", "filter": [3, 3], "weight_variance": 1.6})", relu_text,
         R"({"layer": "local_conv", "filter": [2, 2], "strides": [2, 2], "padding": "valid"})", relu_text,
         gap_text},
        {4, 4});
  check({R"({"layer": "average_pool", "window": [2, 2]})", conv_text(), relu_text, gap_text}, {4, 4});
  check({R"({"layer": "layer_norm", "axes": ["channels", "space"]})", conv_text(), relu_text, gap_text},
        {3, 3});
  check({R"({"layer": "conv", "filter": [2, 2, 3], "weight_variance": 1.7})", relu_text, gap_text},
        {2, 3, 3});
}

TEST_CASE("gram_vjp: random networks") {
  int checked = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Shape shape = seed % 2 == 0 ? Shape{5} : Shape{4, 3};
    const Network network = random_network(seed, shape);
    const auto x1 = random_inputs(seed + 1, batch_of(2, shape, 2)),
               x2 = random_inputs(seed + 2, batch_of(2, shape, 2));
    const auto weights = random_cotangents(seed + 3, 2, 2, Wanted::both);
    GramVjp<double> gradient;
    try {
      gradient = gram_vjp<double>(network, x1, x2, weights);
    } catch (const ArgumentError& error) {
      // Layers that are sampled have no backward pass.
      REQUIRE(std::string(error.what()).find("no adjoint") != std::string::npos);
      continue;
    }
    ++checked;
    std::ostringstream printed;
    printed << network;
    CAPTURE(printed.str());
    CHECK(worst_difference(x1, gradient.x1, [&](const auto& x) {
            return weighted_sum(weights, gram<double>(network, x, x2));
          }) < 1e-6);
    CHECK(worst_difference(x2, gradient.x2, [&](const auto& x) {
            return weighted_sum(weights, gram<double>(network, x1, x));
          }) < 1e-6);
  }
  CHECK(checked >= 25);
}

TEST_CASE("gram_vjp: sequences of different length, and masks") {
  const Network network = network_of(joined(
      {R"({"layer": "conv", "filter": [3], "weight_variance": 1.7})", relu_text, gap_text, dense_text}));
  const auto x = random_inputs(1, {3, 6, 2});
  const std::vector<Index> lengths{6, 4, 5};
  const auto weights = random_cotangents(2, 3, 3, Wanted::both);
  const auto gradient = gram_vjp<double>(network, Inputs<double>(Inputs<double>(x), lengths), weights);
  CHECK(worst_difference(x, gradient, [&](const xt::xarray<double>& moved) {
          return weighted_sum(weights, gram<double>(network, Inputs<double>(Inputs<double>(moved), lengths)));
        }) < 1e-7);
  CHECK(gradient(1, 4, 0) == 0);
  xt::xarray<bool> mask = xt::ones<bool>({3, 6});
  mask(0, 2) = mask(1, 5) = mask(1, 0) = false;
  const auto masked = gram_vjp<double>(network, Inputs<double>(Inputs<double>(x), mask), weights);
  CHECK(worst_difference(x, masked, [&](const xt::xarray<double>& moved) {
          return weighted_sum(weights, gram<double>(network, Inputs<double>(Inputs<double>(moved), mask)));
        }) < 1e-7);
  CHECK(masked(0, 2, 1) == 0);
  CHECK(masked(0, 1, 1) != 0);
  const auto both = [&](const xt::xarray<double>& values) {
    return Inputs<double>(Inputs<double>(Inputs<double>(values), lengths), mask);
  };
  const auto cut = gram_vjp<double>(network, both(x), weights);
  CHECK(worst_difference(x, cut, [&](const xt::xarray<double>& moved) {
          return weighted_sum(weights, gram<double>(network, both(moved)));
        }) < 1e-7);
  CHECK(cut(0, 2, 1) == 0);
  CHECK(cut(1, 4, 0) == 0);
  CHECK(cut(2, 1, 0) != 0);
}

TEST_CASE("gram_vjp: convolutions of one position around the border, between aggregations and elsewhere") {
  const auto x = random_inputs(1, {3, 4, 2});
  Matrix<double> path = Matrix<double>::Zero(4, 4);
  for (Index node = 0; node < 3; ++node) path(node, node + 1) = path(node + 1, node) = 1;
  const std::vector<InputGraph> graphs(3, InputGraph::from_adjacency(path));
  const auto of = [&](const xt::xarray<double>& values) {
    return Inputs<double>(Inputs<double>(values), graphs);
  };
  const auto weights = random_cotangents(2, 3, 3, Wanted::both);
  for (const char* stride : {"1", "2"}) {
    const std::string conv =
        std::string(
            R"({"layer": "conv", "filter": [1], "padding": "circular", "bias_variance": 0.1, "strides": [)") +
        stride + "]}";
    const std::string aggregate = R"({"layer": "aggregate"})",
                      sum = R"({"layer": "sum", "branches": [{"layers": []}, {"layers": [)" + conv + "]}]}";
    const Network network =
        stride[0] == '1' ? network_of(joined({aggregate, sum, aggregate, dense_text, relu_text, gap_text}))
                         : network_of(joined({aggregate, dense_text, relu_text, conv, relu_text, gap_text}));
    const auto gradient = gram_vjp<double>(network, of(x), weights);
    CHECK(worst_difference(x, gradient, [&](const xt::xarray<double>& moved) {
            return weighted_sum(weights, gram<double>(network, of(moved)));
          }) < 1e-7);
  }
}

TEST_CASE("gram_vjp: bits do not depend on threads; float agrees with double") {
  const Network network = network_of(joined({conv_text(), relu_text, gap_text, dense_text}));
  const auto x1 = random_inputs(1, {19, 3, 4, 2}), x2 = random_inputs(2, {37, 3, 4, 2});
  const auto weights = random_cotangents(3, 19, 37, Wanted::both);
  RunControl one, three;
  one.threads = 1;
  three.threads = 3;
  const auto expected = gram_vjp<double>(network, x1, x2, weights, one),
             other = gram_vjp<double>(network, x1, x2, weights, three);
  CHECK(expected.x1 == other.x1);
  CHECK(expected.x2 == other.x2);
  const auto square = random_cotangents(4, 19, 19, Wanted::both);
  CHECK(gram_vjp<double>(network, x1, square, one) == gram_vjp<double>(network, x1, square, three));
  const xt::xarray<float> narrow1 = xt::cast<float>(x1), narrow2 = xt::cast<float>(x2);
  const auto narrow =
      gram_vjp<float>(network, narrow1, narrow2, {weights.nngp.cast<float>(), weights.ntk.cast<float>()});
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < x1.size(); ++i) {
    largest = std::max(largest, std::abs(expected.x1.flat(i)));
    worst = std::max(worst, std::abs(expected.x1.flat(i) - static_cast<double>(narrow.x1.flat(i))));
  }
  CHECK(worst < 1e-4 * largest);
}

TEST_CASE("gram_vjp: the derivatives by some of the inputs are those of both, bit for bit") {
  const auto check = [](const std::string& layers, const std::vector<Index>& of_first,
                        const std::vector<Index>& of_second) {
    const Network network = network_of(layers);
    const auto x1 = random_inputs(1, of_first), x2 = random_inputs(2, of_second);
    const auto weights = random_cotangents(3, of_first[0], of_second[0], Wanted::both);
    const auto both = gram_vjp<double>(network, x1, x2, weights),
               first = gram_vjp<double>(network, x1, x2, weights, VjpInputs::x1),
               second = gram_vjp<double>(network, x1, x2, weights, VjpInputs::x2);
    CHECK(first.x1 == both.x1);
    CHECK(second.x2 == both.x2);
    CHECK(first.x2.size() <= 1);
    CHECK(second.x1.size() <= 1);
  };
  check(joined({dense_text, relu_text, dense_text}), {5, 6}, {7, 6});
  check(joined({conv_text(), relu_text, gap_text, dense_text}), {5, 3, 4, 2}, {4, 3, 4, 2});
  // As one matrix product a pair.
  check(
      joined({R"({"layer": "conv", "filter": [3], "weight_variance": 2})", relu_text, gap_text, dense_text}),
      {5, 6, 20}, {4, 6, 20});
}

TEST_CASE("gram_vjp: equal inputs have finite derivatives") {
  const Network network = network_of(joined({dense_text, relu_text, dense_text, relu_text, dense_text}));
  xt::xarray<double> x = random_inputs(1, {3, 4});
  for (std::size_t k = 0; k < 4; ++k) x(2, k) = x(0, k);
  const auto gradient = gram_vjp<double>(network, x, random_cotangents(2, 3, 3, Wanted::both));
  for (const double entry : gradient) CHECK(std::isfinite(entry));
}

TEST_CASE("gram_vjp: errors name what is wrong") {
  const auto x = random_inputs(1, {3, 4});
  const Network network = network_of(joined({dense_text, relu_text, dense_text}));
  CHECK_THROWS_WITH_AS(gram_vjp<double>(network, x, {}),
                       "gram_vjp: cotangents of the nngp, the ntk or both must be given, got none",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(gram_vjp<double>(network, x, x, {Matrix<double>::Zero(3, 2), {}}),
                       "gram_vjp: the cotangents of the nngp must be [3, 3], got [3, 2]", ArgumentError);
  Matrix<double> bad = Matrix<double>::Zero(3, 3);
  bad(1, 2) = std::nan("");
  CHECK_THROWS_WITH_AS(gram_vjp<double>(network, x, {{}, bad}),
                       "gram_vjp: the cotangents of the ntk must be finite, got nan at (1, 2)",
                       ArgumentError);
  const auto sequences = random_inputs(1, {2, 4, 3});
  const Network sampled =
      network_of(R"({"layer": "attention", "scaling": "inverse_sqrt_width"}, )" + gap_text);
  CHECK_THROWS_WITH_AS(gram_vjp<double>(sampled, sequences, random_cotangents(1, 2, 2, Wanted::nngp)),
                       doctest::Contains("gram_vjp: layers[0] (attention): this layer has no adjoint"),
                       ArgumentError);
  RunControl stopped;
  std::stop_source source;
  source.request_stop();
  stopped.stop = source.get_token();
  CHECK_THROWS_AS(gram_vjp<double>(network, x, random_cotangents(1, 3, 3, Wanted::nngp), stopped), Cancelled);
  RunControl reported;
  std::ptrdiff_t last = 0, total = 0;
  reported.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
    last = done;
    total = all;
  };
  static_cast<void>(gram_vjp<double>(network, x, random_cotangents(1, 3, 3, Wanted::nngp), reported));
  CHECK(last == 6);
  CHECK(total == 6);
}

TEST_CASE("gram_vjp: inputs that the network cannot be applied to are the errors of gram()") {
  const Network network({layers::conv({.filter = {2, 2}}), layers::relu(), layers::flatten()});
  const std::vector<xt::xarray<double>> images{random_inputs(1, {2, 6, 3}), random_inputs(2, {3, 4, 3})};
  const Inputs<double> x(images);
  const auto weights = random_cotangents(3, 2, 2, Wanted::both);
  const auto message = doctest::Contains(
      "layers[2] (flatten): expected inputs of equal size, got 2x6 positions for input 0 of x");
  CHECK_THROWS_WITH_AS(static_cast<void>(gram<double>(network, x)), message, NetworkError);
  CHECK_THROWS_WITH_AS(static_cast<void>(gram_vjp<double>(network, x, weights)), message, NetworkError);
  CHECK_THROWS_AS(static_cast<void>(gram_vjp<double>(network, x, x, weights)), NetworkError);
}

}  // namespace widelimit::testing
