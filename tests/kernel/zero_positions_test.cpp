// Positions without variance after layers without biases: kernels with NTKs there, and one-sided slopes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>
#include <xtensor/xview.hpp>

#include "kernel/differences.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

const StandardParametrisation of_three{.input_width = 3, .width_scale = 1, .zero_biases = true};

/// A nonlinearity and phi'(0), the mean of both sides; if it is not 0 it is the mean of phi' at any variance, too.
struct KinkedLayer {
  Layer layer;
  double slope;
};

std::vector<KinkedLayer> kinked_layers() {
  return {{relu(), 0.5},
          {leaky_relu(0.5), 0.75},
          {ab_relu(-0.3, 1.7), 0.7},
          {layers::abs(), 0},
          {rectified_monomial(1), 0.5},
          {rectified_monomial(2), 0},
          {gelu(), 0.5},
          {exp_normalized(0.8, -0.5), std::sqrt(0.8) * std::exp(-0.2)}};
}

/// Images of 8 x 8 with a black border, or of zeros only.
xt::xarray<double> bordered_images(Index channels) {
  xt::xarray<double> images =
      xt::zeros<double>({std::size_t{3}, std::size_t{8}, std::size_t{8}, static_cast<std::size_t>(channels)});
  const auto values = random_inputs(5, {3, 8, 8, channels});
  for (std::size_t y = 3; y < 5; ++y)
    for (std::size_t z = 3; z < 6; ++z)
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
        images(0, y, z, c) = values(0, y, z, c);
  for (std::size_t y = 0; y < 8; ++y)
    for (std::size_t z = 0; z < 8; ++z)
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
        images(1, y, z, c) = values(1, y, z, c);
  return images;
}

template <typename Scalar>
void check_zero_vectors(const KinkedLayer& tested) {
  CAPTURE(tested.layer.kind());
  const Network network({dense({1.96, 0, of_three}), tested.layer, dense()});
  xt::xarray<Scalar> x = random_inputs(3, {4, 3});
  for (std::size_t c = 0; c < 3; ++c) x(0, c) = x(2, c) = 0;
  const auto kernels = gram<Scalar>(network, x);
  const double tolerance = sizeof(Scalar) == 4 ? 1e-6 : 1e-13;
  for (const auto& [i, j] : {std::pair{0, 0}, std::pair{0, 2}, std::pair{2, 2}}) {
    CHECK(kernels.nngp(i, j) == 0);
    CHECK(std::abs(static_cast<double>(kernels.ntk(i, j)) - tested.slope * tested.slope) <= tolerance);
  }
  const double expected = tested.slope * tested.slope;
  CHECK(std::abs(static_cast<double>(kernels.ntk(0, 1)) - expected) <= tolerance);
  CHECK(std::abs(static_cast<double>(kernels.ntk(3, 2)) - expected) <= tolerance);
  const auto diagonal = gram_diagonal<Scalar>(network, x);
  CHECK(diagonal.ntk == kernels.ntk.diagonal());
}

TEST_CASE("zero positions: the NTK of zero vectors is that of phi'(0), the mean of both sides") {
  for (const KinkedLayer& tested : kinked_layers()) {
    check_zero_vectors<float>(tested);
    check_zero_vectors<double>(tested);
  }
}

TEST_CASE("zero positions: so is the NTK behind weights of variance 0") {
  const Network network({dense({0, 0, of_three}), leaky_relu(0.5), dense()});
  const auto x = random_inputs(3, {2, 3});
  const auto kernels = gram<double>(network, x);
  const double product = (x(0, 0) * x(1, 0) + x(0, 1) * x(1, 1) + x(0, 2) * x(1, 2)) / 3;
  CHECK(kernels.nngp(0, 1) == 0);
  CHECK(std::abs(kernels.ntk(0, 1) - 0.5625 * (3 * product + 1)) <= 1e-12);
}

TEST_CASE("zero positions: a black border, as neural-tangents 0.6.5 has it") {
  xt::xarray<double> x = xt::zeros<double>({1, 8, 8, 1});
  x(0, 3, 3, 0) = 0.5;
  x(0, 3, 4, 0) = -1;
  x(0, 4, 3, 0) = 2;
  x(0, 4, 4, 0) = 0.25;
  const Network network({conv({.filter = {3, 3},
                               .weight_variance = 1.96,
                               .standard = {{.input_width = 1, .width_scale = 1, .zero_biases = true}}}),
                         relu(), global_average_pool(), dense()});
  CHECK(std::abs(gram<double>(network, x).ntk(0, 0) - 0.2628488797990972) <= 1e-12);
  CHECK(std::abs(static_cast<double>(gram<float>(network, xt::xarray<float>(x)).ntk(0, 0)) -
                 0.2628488797990972) <= 1e-6);
}

KernelCotangents<double> cotangents_of(Index rows, Index columns, bool nngp, bool ntk) {
  KernelCotangents<double> cotangents;
  const auto one = random_inputs(31, {rows, columns}), other = random_inputs(32, {rows, columns});
  if (nngp) cotangents.nngp = Eigen::Map<const Matrix<double>>(one.data(), rows, columns);
  if (ntk) cotangents.ntk = Eigen::Map<const Matrix<double>>(other.data(), rows, columns);
  return cotangents;
}

/// The largest error of `gradient` relative to its largest entry (or .001), against central differences, whose error at
/// zeros begins with the step itself: products of what changes with t and with |t|.
template <typename Value>
double worst_at_zeros(const xt::xarray<double>& x, const xt::xarray<double>& gradient, const Value& value) {
  constexpr double step = 1e-5;
  double largest = 1e-3, worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto difference = [&](double h) {
      xt::xarray<double> above = x, below = x;
      above.flat(i) += h;
      below.flat(i) -= h;
      return (value(above) - value(below)) / (2 * h);
    };
    largest = std::max(largest, std::abs(gradient.flat(i)));
    worst = std::max(worst, std::abs(2 * difference(step) - difference(2 * step) - gradient.flat(i)));
  }
  return worst / largest;
}

/// Central differences of kernels are the mean of the slopes to both sides.
void check_one_sided_means(const std::string& name, const Network& network, const xt::xarray<double>& x,
                           const xt::xarray<double>& y) {
  CAPTURE(name);
  const auto rows = static_cast<Index>(x.shape(0)), columns = static_cast<Index>(y.shape(0));
  for (const auto& [nngp, ntk] : {std::pair{true, false}, std::pair{false, true}}) {
    CAPTURE(ntk);
    const auto weights = cotangents_of(rows, columns, nngp, ntk);
    const GramVjp<double> gradient = gram_vjp<double>(network, x, y, weights);
    CHECK(worst_at_zeros(x, gradient.x1, [&](const auto& moved) {
            return weighted_sum(weights, gram<double>(network, moved, y));
          }) < 1e-7);
    CHECK(worst_at_zeros(y, gradient.x2, [&](const auto& moved) {
            return weighted_sum(weights, gram<double>(network, x, moved));
          }) < 1e-7);
    const auto in_float = gram_vjp<float>(network, xt::xarray<float>(x), xt::xarray<float>(y),
                                          {weights.nngp.cast<float>(), weights.ntk.cast<float>()});
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(gradient.x1.flat(i)));
      worst = std::max(worst, std::abs(gradient.x1.flat(i) - static_cast<double>(in_float.x1.flat(i))));
    }
    CHECK(largest > 0);
    CHECK(worst <= 1e-5 * largest);
  }
}

TEST_CASE("zero positions: derivatives by zero vectors are the mean of the slopes to both sides") {
  const xt::xarray<double> zeros = xt::zeros<double>({1, 3}), y = random_inputs(4, {3, 3});
  for (const Layer& layer : {relu(), leaky_relu(0.5), ab_relu(-0.3, 1.7), gelu()})
    check_one_sided_means(layer.kind(), Network({dense({1.96}), layer, dense()}), zeros, y);
}

TEST_CASE("zero positions: derivatives by black borders are the mean of the slopes to both sides") {
  const auto images = bordered_images(1);
  const xt::xarray<double> x = xt::view(images, xt::range(0, 1)), y = xt::view(images, xt::range(1, 2));
  const Layer filter = conv({.filter = {3, 3}, .weight_variance = 1.7});
  const Layer average = average_pool({.window = {2, 2}, .strides = {2, 2}, .padding = Padding::valid});
  for (const Layer& layer : {relu(), leaky_relu(0.5)}) {
    check_one_sided_means("global average", Network({filter, layer, global_average_pool(), dense()}), x, y);
    check_one_sided_means("flatten", Network({filter, layer, flatten(), dense()}), x, y);
    check_one_sided_means("pooling", Network({filter, layer, average, filter, flatten(), dense()}), x, y);
  }
}

TEST_CASE("zero positions: derivatives by zeros before attention are the mean of the slopes to both sides") {
  xt::xarray<double> x = random_inputs(6, {1, 4, 3});
  for (std::size_t c = 0; c < 3; ++c) x(0, 1, c) = 0;
  const auto y = random_inputs(7, {1, 4, 3});
  AttentionOptions options{.scaling = AttentionScaling::inverse_sqrt_width, .query_key_std = 0.9};
  for (const auto& zeta : {relu(), leaky_relu(0.3)}) {
    options.weights = AttentionWeights::elementwise(zeta);
    options.mask = AttentionMask::full;
    check_one_sided_means("homogeneous", Network({attention(options), global_average_pool(), dense()}), x, y);
    options.mask = AttentionMask::causal;
    check_one_sided_means("entry by entry", Network({attention(options), global_average_pool(), dense()}), x,
                          y);
  }
}

TEST_CASE(
    "zero positions: behind several kinks phi'(0) is the mean in each, where no linear function is the mean "
    "of all") {
  const xt::xarray<double> zeros = xt::zeros<double>({1, 3}), y = random_inputs(4, {1, 3});
  const Network network({dense({1.96}), relu(), dense({1.3}), leaky_relu(0.5), dense()});
  const auto gradient =
      gram_vjp<double>(network, zeros, y, {.nngp = Matrix<double>::Ones(1, 1)}, VjpInputs::x1).x1;
  for (std::size_t c = 0; c < 3; ++c)
    CHECK(std::abs(gradient(0, c) - 1.96 * 0.25 * 1.3 * 0.5625 * y(0, c) / 3) <= 1e-14);
}

TEST_CASE("zero positions: derivatives by numbers of the network, in the backward pass and by differences") {
  xt::xarray<double> x = random_inputs(3, {3, 3});
  for (std::size_t c = 0; c < 3; ++c) x(0, c) = 0;
  const Network network({dense({1.96, 0, of_three}), relu(), dense({1.3}), leaky_relu(0.5), dense({1.1})});
  const std::vector<std::string> numbers{"layers[0].weight_variance", "layers[2].weight_variance",
                                         "layers[4].weight_variance"};
  const auto by_differences = gram_gradient(network, x, numbers);
  const auto weights = cotangents_of(3, 3, true, true);
  const auto back = gram_number_vjp<double>(network, x, weights, numbers);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    CAPTURE(numbers[k]);
    const double expected = by_differences[k].nngp.cwiseProduct(weights.nngp).sum() +
                            by_differences[k].ntk.cwiseProduct(weights.ntk).sum();
    CHECK(std::abs(back[k] - expected) <= 1e-8 * (1 + std::abs(expected)));
  }
}

}  // namespace
}  // namespace widelimit::testing
