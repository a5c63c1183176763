// From the smallest to the largest numbers of both precisions: every activation is right, or an error names
// the layer and the input.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "support/activation_layers.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::testing {
namespace {

Layers nonlinearities() {
  Layers all = activations();
  all.push_back(layers::exp(1, -0.3));
  all.push_back(layers::gaussian(1, 0.1));
  all.push_back(layers::hermite(3));
  return all;
}

/// Two vectors of the given sizes, correlation -0.18.
template <typename Scalar>
xt::xarray<Scalar> vectors(double left, double right) {
  xt::xarray<Scalar> x = xt::zeros<Scalar>({2, 2});
  x(0, 0) = static_cast<Scalar>(left);
  x(0, 1) = static_cast<Scalar>(0.5 * left);
  x(1, 0) = static_cast<Scalar>(0.3 * right);
  x(1, 1) = static_cast<Scalar>(-right);
  return x;
}

/// "gram: input 1 of x: layers[1] (relu): ..."
void check_message(const std::string& message, const Layer& layer) {
  CAPTURE(message);
  CHECK(message.find("gram: input ") == 0);
  const bool names_layer = message.find("layers[1] (" + layer.kind() + ")") != std::string::npos ||
                           message.find("layers[0] (dense)") != std::string::npos ||
                           message.find(" of x: input: ") != std::string::npos;
  CHECK(names_layer);
  CHECK(message.find("nan") == std::string::npos);
}

/// Against the double dual at variances that the vectors have in double; what gram() computes in float.
void check_values(const GramResult<float>& kernels, const Layer& layer, const xt::xarray<float>& x) {
  const auto product = [&](std::size_t i, std::size_t j) {
    return (static_cast<double>(x(i, 0)) * static_cast<double>(x(j, 0)) +
            static_cast<double>(x(i, 1)) * static_cast<double>(x(j, 1))) /
           2;
  };
  const auto activation = layers::activation_of(layer);
  const auto of_pair = [&](std::size_t i, std::size_t j) {
    return activation->dual(product(i, i), product(j, j), product(i, j));
  };
  const double scale = std::sqrt(of_pair(0, 0).value) * std::sqrt(of_pair(1, 1).value);
  // What float makes of the variances: exponentials and cubes multiply their rounding errors.
  const double sharpness = 1 + (layer.kind() == "exp" ? product(0, 0) + product(1, 1) : 0);
  const double smallest = std::numeric_limits<float>::min();
  CHECK(std::abs(static_cast<double>(kernels.nngp(0, 1)) - of_pair(0, 1).value) <=
        3e-6 * sharpness * scale + smallest);
  for (const std::size_t i : {0U, 1U}) {
    const auto place = static_cast<Index>(i);
    CHECK(std::abs(static_cast<double>(kernels.nngp(place, place)) - of_pair(i, i).value) <=
          3e-6 * sharpness * of_pair(i, i).value + smallest);
  }
  const double slopes = std::sqrt(std::abs(of_pair(0, 0).derivative * of_pair(1, 1).derivative));
  const double covariances = std::sqrt(product(0, 0)) * std::sqrt(product(1, 1));
  CHECK(std::abs(static_cast<double>(kernels.ntk(0, 1)) - of_pair(0, 1).derivative * product(0, 1)) <=
        1e-5 * sharpness * slopes * covariances + smallest);
}

}  // namespace

TEST_CASE("activations over the range of float: right, or an error that names layer and input") {
  for (const Layer& layer : nonlinearities())
    for (int left = -18; left <= 18; ++left)
      for (const int apart : {0, -7, 12}) {
        // These are the kernels of no function.
        if (layer.kind() == "exp_normalized" || layer.kind() == "matern") continue;
        const int right = std::clamp(left + apart, -18, 18);
        CAPTURE(layer.kind());
        CAPTURE(left);
        CAPTURE(right);
        const auto x = vectors<float>(std::pow(10, left), std::pow(10, right));
        try {
          check_values(gram<float>(Network({layers::dense(), layer}), x), layer, x);
        } catch (const NumericalError& error) {
          check_message(error.what(), layer);
        }
      }
}

/// Right numbers over this range: tests/numerics/range_test.cpp.
TEST_CASE("activations over the range of double: finite, or an error that names layer and input") {
  for (const Layer& layer : nonlinearities())
    for (int left = -160; left <= 160; left += 8)
      for (const int apart : {0, -70, 120}) {
        CAPTURE(layer.kind());
        CAPTURE(left);
        const auto x = vectors<double>(std::pow(10, left), std::pow(10, std::clamp(left + apart, -160, 160)));
        try {
          const auto kernels = gram<double>(Network({layers::dense(), layer}), x);
          CHECK(kernels.nngp.allFinite());
          CHECK(kernels.ntk.allFinite());
        } catch (const NumericalError& error) {
          check_message(error.what(), layer);
        }
      }
}

TEST_CASE("networks with positions name the layer and the input too") {
  xt::xarray<float> x = xt::ones<float>({3, 4, 4, 1});
  x(2, 1, 1, 0) = 1e20F;
  const Layer conv = layers::conv({.filter = {3, 3}});
  const auto message = [&](const Network& network) -> std::string {
    try {
      static_cast<void>(gram<float>(network, x));
    } catch (const NumericalError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(
      message(Network({conv, layers::erf(), layers::flatten(), layers::dense()})) ==
      "gram: input 2 of x: layers[1] (erf): the variance of position 0 is not finite, it leaves the range of "
      "float: rescale the inputs or weights, or use double");
  x(2, 1, 1, 0) = 1e9F;
  CHECK(message(Network({conv, layers::relu(), layers::flatten(), layers::dense()}))
            .find("gram: input 2 of x: layers[1] (relu): a variance before a ReLU-like activation") == 0);
}

/// After them, layers that know no scale would make zeros of ones.
TEST_CASE_TEMPLATE("variances that rounding makes 0, or nearly, are errors", Scalar, float, double) {
  const double tiny = sizeof(Scalar) == 4 ? 1e-30 : 1e-200;
  const double subnormal = sizeof(Scalar) == 4 ? 1e-42 : 1e-315;
  const auto dense = [](double weight) { return layers::dense({.weight_variance = weight}); };
  const Layer sign = layers::sign(), cube = layers::polynomial({0, 0, 0, 1});
  const Layer square = layers::product({{1, {dense(1)}}, {1, {dense(1)}}});
  const Layer conv = layers::conv({.filter = {3}}), pool = layers::global_average_pool();
  const auto refuses = [](const std::vector<Layer>& list, const xt::xarray<Scalar>& x, const char* layer) {
    std::string message;
    try {
      static_cast<void>(gram<Scalar>(Network(list), x));
    } catch (const NumericalError& error) {
      message = error.what();
    }
    CAPTURE(layer);
    CAPTURE(message);
    CHECK(message.find("gram: input 0 of x: ") == 0);
    CHECK(message.find(layer) != std::string::npos);
    CHECK(message.find("it leaves the range of ") != std::string::npos);
  };
  const auto x = vectors<Scalar>(1, 0.7);
  refuses({dense(tiny), cube, dense(1), sign, dense(1)}, x, "layers[1] (polynomial)");
  refuses({dense(tiny), cube, dense(1), layers::rms_norm({.epsilon = 0})}, x, "layers[1] (polynomial)");
  refuses({dense(tiny), dense(tiny), sign, dense(1)}, x, "layers[1] (dense)");
  refuses({dense(tiny), square, dense(1), sign, dense(1)}, x, "layers[1]");
  refuses({dense(subnormal), sign, dense(1)}, x, "layers[0] (dense)");
  xt::xarray<Scalar> sequences = xt::ones<Scalar>({2, 4, 2});
  refuses({dense(tiny), cube, conv, sign, conv, pool}, sequences, "layers[1] (polynomial)");
  refuses({conv, dense(tiny), dense(tiny), sign, conv, pool}, sequences, "layers[2] (dense)");
  refuses({dense(subnormal), sign, conv, pool}, sequences, "layers[1] (sign)");
  sequences *= static_cast<Scalar>(tiny);
  refuses({conv, sign, conv, pool}, sequences, "input");
}

TEST_CASE("zeros that are none of rounding's are no errors") {
  xt::xarray<float> images = xt::zeros<float>({3, 4, 4, 1});
  images(1, 2, 2, 0) = 1;
  images(2, 2, 2, 0) = 1;
  images(2, 0, 0, 0) = 1e-25F;  // 0 beside a 1
  const Layer conv = layers::conv({.filter = {3, 3}, .bias_variance = 0.1});
  const Layer plain = layers::conv({.filter = {3, 3}});
  const Layer pool = layers::global_average_pool(), zero = layers::polynomial({0});
  CHECK(gram<float>(Network({conv, layers::relu(), conv, pool}), images).nngp.allFinite());
  CHECK(gram<float>(Network({plain, layers::erf(), plain, pool}), images).nngp(0, 0) == 0);
  CHECK(gram<float>(Network({plain, zero, conv, pool}), images).nngp(1, 1) > 0);
  CHECK(gram<float>(Network({layers::flatten(), layers::dense(), zero, layers::dense({.bias_variance = 1})}),
                    images)
            .nngp(1, 1) == 1);
}

/// The NTK of deep networks leaves the range before their NNGP does.
TEST_CASE("an ntk out of range names the layer and the input") {
  const Layer dense = layers::dense({.weight_variance = 2});
  const Layer conv = layers::conv({.filter = {3}, .weight_variance = 2});
  const auto message = [](const std::vector<Layer>& list, const auto& x) -> std::string {
    const Network network(list);
    CHECK(gram(network, x, {.kernels = Kernels::nngp}).nngp.allFinite());
    try {
      static_cast<void>(gram(network, x));
    } catch (const NumericalError& error) {
      return error.what();
    }
    return "no error";
  };
  std::vector<Layer> vectors_network, sequences_network;
  for (int i = 0; i < 9; ++i)
    for (const Layer& layer : {dense, layers::erf()}) vectors_network.push_back(layer);
  const auto scale = [](std::vector<Layer> list, double variance) {
    list.push_back(layers::dense({.weight_variance = variance}));
    return list;
  };
  const auto x = random_inputs<float>(3, {3, 5});
  const Inputs<float> vectors_in = x;
  CHECK(message(scale(vectors_network, 1e38), vectors_in) ==
        "gram: input 0 of x: layers[18] (dense): the ntk is not finite, it leaves the range of float: "
        "rescale the "
        "inputs or weights, or use double");
  const auto y = random_inputs<float>(4, {3, 6, 2});
  const Inputs<float> sequences_in = y;
  for (const bool attends : {false, true}) {
    std::vector<Layer> list;
    for (int i = 0; i < 9; ++i)
      for (const Layer& layer : {conv, layers::erf()}) list.push_back(layer);
    list.push_back(layers::conv({.filter = {1}, .weight_variance = 1e38}));
    list.push_back(layers::erf());
    if (attends) list.push_back(layers::attention());
    for (const Layer& layer : {conv, layers::erf(), layers::global_average_pool()}) list.push_back(layer);
    const std::string found = message(list, sequences_in);
    CAPTURE(found);
    CHECK(found.find("gram: input 0 of x: layers[18] (conv): the ntk is not finite") == 0);
  }
}

TEST_CASE("kernels that leave the range before a readout name their layer") {
  const auto x = random_inputs(2, {2, 4, 3});
  Matrix<double> huge = Matrix<double>::Zero(2, 4);
  huge(0, 0) = huge(0, 1) = 1e308;
  const auto message_of = [&](const Layers& list) -> std::string {
    try {
      static_cast<void>(gram<double>(Network(list), x));
    } catch (const NumericalError& error) {
      return error.what();
    }
    return "no error";
  };
  const Layer steep = layers::erf(1e200);
  for (const Layer& readout : {layers::global_average_pool(), layers::flatten()}) {
    CHECK(message_of({layers::dense(), steep, readout})
              .find("gram: layers[1] (erf): the nngp of pair (0, 0) is ") == 0);
    CHECK(message_of({layers::positions_map(huge), readout, layers::dense()})
              .find("layers[0] (positions_map)") != std::string::npos);
    CHECK(message_of({layers::dense(), layers::relu(), layers::dense(), layers::positions_map(huge), readout})
              .find("gram: layers[3] (positions_map): the nngp of pair (0, 0) is ") == 0);
    CHECK(message_of({layers::dense(), layers::repeat(2, {layers::erf(1e200), layers::dense()}), readout})
              .find("gram: ") == 0);
  }
}

TEST_CASE("norms of inputs do not see the scale, however large or small") {
  const auto x = random_inputs(5, {3, 4, 3});
  for (const bool positions : {false, true})
    for (const layers::NormAxes axes : {layers::NormAxes::channels, layers::NormAxes::channels_and_space}) {
      Layers list{layers::rms_norm({axes, 0.0}), layers::dense(), layers::relu(), layers::dense()};
      if (positions) list.insert(list.begin() + 3, layers::global_average_pool());
      xt::xarray<double> inputs = x;
      if (!positions) inputs.reshape({3, 12});
      const Network network(list);
      const auto expected = gram<double>(network, inputs);
      for (const double scale : {1e-305, 1e-200, 1e-162, 1e-120, 1e120, 1e154, 1e300}) {
        CAPTURE(scale);
        const auto found = gram<double>(network, xt::xarray<double>(inputs * scale));
        CHECK((found.nngp - expected.nngp).cwiseAbs().maxCoeff() < 1e-12);
        CHECK((found.ntk - expected.ntk).cwiseAbs().maxCoeff() < 1e-12);
      }
    }
  // Beside an epsilon, what is far larger is normalised all the same.
  const Network shifted({layers::layer_norm({layers::NormAxes::channels, 1e-3}), layers::dense()});
  xt::xarray<double> vectors = x;
  vectors.reshape({3, 12});
  const auto large = gram<double>(shifted, xt::xarray<double>(vectors * 1e200)),
             larger = gram<double>(shifted, xt::xarray<double>(vectors * 1e250));
  CHECK(large.nngp(0, 0) == doctest::Approx(1).epsilon(1e-12));
  CHECK((large.nngp - larger.nngp).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE("variances and scales that leave the range of the precision are errors, not zeros") {
  const auto x = random_inputs(2, {2, 3});
  const auto message_of = [](const auto& compute) -> std::string {
    try {
      compute();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto of_float = [&](const Layers& list) {
    return message_of([&] { static_cast<void>(gram<float>(Network(list), xt::xarray<float>(x))); });
  };
  CHECK(of_float({layers::dense({.weight_variance = 0, .bias_variance = 2.3e-308}), layers::sign(),
                  layers::dense()})
            .find("layers[0] (dense): the bias variance is 2.3e-308, it leaves the range of float") !=
        std::string::npos);
  CHECK(of_float({layers::dense({.weight_variance = 1e-60}), layers::sign(), layers::dense()})
            .find("layers[0] (dense): the weight variance is 1e-60") != std::string::npos);
  CHECK(of_float({layers::sum({{1, {}}, {1e-30, {layers::dense()}}}), layers::dense()})
            .find("layers[0] (sum): the factor of a branch is 1e-60") != std::string::npos);
  CHECK(of_float({layers::product({{1e-30, {layers::dense()}}, {1, {layers::dense()}}}), layers::dense()})
            .find("layers[0] (product): the factor of the branches is 1e-60") != std::string::npos);
  // Double holds them all.
  const Network tiny(
      {layers::dense({.weight_variance = 0, .bias_variance = 2.3e-300}), layers::sign(), layers::dense()});
  CHECK(gram<double>(tiny, x).nngp(0, 1) == doctest::Approx(1).epsilon(1e-14));
  const auto of_double = [&](const Layers& list) {
    return message_of([&] { static_cast<void>(gram<double>(Network(list), x)); });
  };
  CHECK(
      of_double(
          {layers::product({{1e-100, {layers::dense()}}, {-1e-100, {layers::dense()}}}), layers::dense()})
          .find("layers[0] (product): expected scales whose squares have a product in the range of double") !=
      std::string::npos);
  CHECK(message_of([] {
          static_cast<void>(layers::product({{-1e-200, {layers::dense()}}, {1, {}}}));
        }) == "product: expected a scale of 0, or one of size 1.5e-154 to 1.3e154, got -1e-200");
  CHECK(message_of([] {
          static_cast<void>(layers::sum({{1e200, {layers::dense()}}, {1, {}}}));
        }).starts_with("sum: expected a scale of 0"));
}

TEST_CASE("layer norms of constant inputs without epsilon are 0") {
  // The rounding of a mean would be divided by its own size.
  for (const std::size_t size : {1, 3, 6, 7, 49, 100})
    for (const double value : {0.1, 0.3, 0.7, 1e-9, 123.456}) {
      CAPTURE(size);
      CAPTURE(value);
      const xt::xarray<double> vectors = value * xt::ones<double>({std::size_t{2}, size});
      const Network network({layers::layer_norm({layers::NormAxes::channels, 0.0}), layers::dense()});
      CHECK(gram<double>(network, vectors).nngp.cwiseAbs().maxCoeff() == 0);
      CHECK(gram<float>(network, xt::xarray<float>(vectors)).nngp.cwiseAbs().maxCoeff() == 0);
    }
}

}  // namespace widelimit::testing
