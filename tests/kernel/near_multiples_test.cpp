// Inputs that are nearly multiples of each other, and multiples that a layer parts: neither may be treated as
// perfectly correlated.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "kernel/backends/reference/naive_kernel.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

const Layer unbiased_dense = layers::dense({.weight_variance = 1.7, .bias_variance = 0});

template <typename Scalar>
NaiveInput row_of(const xt::xarray<Scalar>& x, std::size_t i) {
  NaiveInput input{{}, RealMatrix(1, static_cast<Index>(x.shape(1)))};
  for (std::size_t k = 0; k < x.shape(1); ++k) input.features(0, static_cast<Index>(k)) = x(i, k);
  return input;
}

/// Compares all pairs of different inputs with the naive kernel, relative to the variances.
template <typename Scalar>
void check_pairs(const Network& network, const xt::xarray<Scalar>& x, double tolerance) {
  const NaiveKernel naive(network);
  const auto kernels = gram<Scalar>(network, x);
  for (std::size_t i = 0; i < x.shape(0); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const NaiveInput left = row_of(x, i), right = row_of(x, j);
      const NaiveValues expected = naive(left, right, false), of_left = naive(left, left, true),
                        of_right = naive(right, right, true);
      const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
      CAPTURE(i);
      CAPTURE(j);
      CHECK(std::abs(kernels.nngp(row, column) - expected.nngp) <=
            tolerance * std::sqrt(of_left.nngp * of_right.nngp));
      CHECK(std::abs(kernels.ntk(row, column) - expected.ntk) <=
            tolerance * std::sqrt(of_left.ntk * of_right.ntk));
    }
}

/// Two vectors at an angle.
template <typename Scalar>
xt::xarray<Scalar> at_angle(double angle) {
  xt::xarray<Scalar> x = xt::zeros<Scalar>({2, 2});
  x(0, 0) = 1;
  x(1, 0) = static_cast<Scalar>(3 * std::cos(angle));
  x(1, 1) = static_cast<Scalar>(3 * std::sin(angle));
  return x;
}

}  // namespace

/// One rounding of a covariance is an angle of its root; above that, angles count.
TEST_CASE("inputs at a small angle are not multiples") {
  const Network network({layers::repeat(5, {unbiased_dense, layers::relu()}), unbiased_dense});
  for (const double angle : {1e-1, 1e-2, 2e-3}) check_pairs(network, at_angle<float>(angle), 3e-4);
  for (const double angle : {1e-1, 1e-3, 1e-5, 4e-7}) check_pairs(network, at_angle<double>(angle), 2e-8);
}

TEST_CASE("biases and sums of unlike branches part multiples") {
  auto x = random_inputs<double>(8, {6, 7});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 7; ++k) x(i + 3, k) = 3 * x(i, k);
  const Layer biased = layers::dense({.weight_variance = 1.7, .bias_variance = 0.2});
  const Layer square = layers::product({{1, {unbiased_dense}}, {1, {unbiased_dense, layers::relu()}}});
  const std::vector<Layer> parting[] = {{biased, layers::relu()},
                                        {layers::sum({{1, {unbiased_dense}}, {0.8, {square}}})},
                                        {unbiased_dense, layers::erf()}};
  for (const auto& layers_in_front : parting) {
    std::vector<Layer> all = layers_in_front;
    for (const Layer& layer :
         {unbiased_dense, layers::relu(), unbiased_dense, layers::relu(), unbiased_dense})
      all.push_back(layer);
    check_pairs(Network(all), x, 1e-13);
  }
}

/// Such networks are computed in double: numbers beyond the range of float are an error all the same.
TEST_CASE("deep networks in float: results out of range are errors") {
  const Network network(
      {layers::repeat(60, {layers::dense({.weight_variance = 2, .bias_variance = 0}), layers::relu()}),
       layers::dense({.weight_variance = 1, .bias_variance = 0})});
  xt::xarray<float> x = xt::ones<float>({3, 2});
  x(1, 0) = x(1, 1) = 1.7e19F;
  CHECK(std::isfinite(gram<float>(network, x, {.kernels = Kernels::nngp}).nngp(1, 1)));
  CHECK_THROWS_AS(static_cast<void>(gram<float>(network, x)), NumericalError);
  x(1, 0) = 3e19F;
  CHECK_THROWS_AS(static_cast<void>(gram<float>(network, x, {.kernels = Kernels::nngp})), NumericalError);
}

}  // namespace widelimit::testing
