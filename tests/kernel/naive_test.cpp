#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <sstream>

#include "kernel/naive_kernel.hpp"
#include "kernel/random_networks.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

const std::array<Shape, 6> shapes{Shape{7}, {4, 5}, {3, 3, 3}, {12}, {5, 3}, {2, 4, 3}};

RealMatrix features(const Inputs<double>& inputs, Index i) {
  RealMatrix matrix(position_count(inputs.shape()), inputs.channels());
  std::copy(inputs[i].begin(), inputs[i].end(), matrix.data());
  return matrix;
}

/// Deviations relative to the geometric mean of the two inputs' own kernels: entries near 0 are sums that
/// cancel.
void check_against(const NaiveKernel& naive, const Inputs<double>& x1, const Inputs<double>& x2,
                   bool one_batch, const GramResult<double>& computed, double tolerance) {
  for (Index i = 0; i < x1.size(); ++i)
    for (Index j = 0; j < x2.size(); ++j) {
      const RealMatrix left = features(x1, i), right = features(x2, j);
      const auto [k, t] = naive(left, right, one_batch && i == j);
      const auto [k_left, t_left] = naive(left, left, true);
      const auto [k_right, t_right] = naive(right, right, true);
      const Real k_scale = std::sqrt(k_left * k_right), t_scale = std::sqrt(t_left * t_right);
      CAPTURE(i);
      CAPTURE(j);
      CHECK(static_cast<double>(std::abs(computed.nngp(i, j) - k) / k_scale) < tolerance);
      CHECK(static_cast<double>(std::abs(computed.ntk(i, j) - t) / t_scale) < tolerance);
    }
}

/// Untied attention makes all positions of an input equal. Their correlation of 1 then comes out of sums in
/// different orders, eps too low, and the angle of ReLU's derivative is its root: the NTK is exact to
/// sqrt(eps) only. Otherwise eps is multiplied by variances up to some 1e5, where erf's derivative or cos
/// sees differences of them.
double tolerance_for(const std::string& network) {
  return network.find("tied=false") == std::string::npos ? 1e-10 : 1e-7;
}

void check_random_networks(unsigned first_seed, unsigned count) {
  for (unsigned seed = first_seed; seed < first_seed + count; ++seed) {
    const Shape& shape = shapes[seed % shapes.size()];
    const Network network = random_network(seed, shape);
    std::ostringstream printed;
    printed << network;
    CAPTURE(seed);
    CAPTURE(printed.str());
    std::vector<Index> dimensions{3};
    dimensions.insert(dimensions.end(), shape.begin(), shape.end());
    dimensions.push_back(2);
    const auto x1 = random_inputs(seed, dimensions), x2 = random_inputs(seed + 1000, dimensions);
    const NaiveKernel naive(network, shape);
    const double tolerance = tolerance_for(printed.str());
    check_against(naive, x1, x1, true, gram<double>(network, x1), tolerance);
    check_against(naive, x1, x2, false, gram<double>(network, x1, x2), tolerance);
  }
}

TEST_CASE("random networks agree with the naive kernel") { check_random_networks(1, 60); }

TEST_CASE("a kept norm or dropout whose result no variance needs") { check_random_networks(1024, 2); }

TEST_CASE("an image of which few offsets along the first axis are demanded") {
  check_random_networks(1573, 1);
  check_random_networks(1613, 1);
}

void check_network(const Network& network, const Shape& shape) {
  const std::vector<Index> dimensions{1, shape[0], shape[1], 2};
  const auto x1 = random_inputs(1, dimensions), x2 = random_inputs(2, dimensions);
  const NaiveKernel naive(network, shape);
  check_against(naive, x1, x1, true, gram<double>(network, x1), 1e-10);
  check_against(naive, x1, x2, false, gram<double>(network, x1, x2), 1e-10);
}

Layers two_convolutions() {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  const Layer strided = layers::conv({.filter = {3, 3}, .strides = {2, 1}, .weight_variance = 1.5});
  return {conv, layers::relu(), strided, layers::relu()};
}

// Planes of complementary offsets share one, in front of strides too; the gaps between them grow with these.
TEST_CASE("strided branches of an image agree with the naive kernel") {
  const auto conv = [](Index size, Index stride) {
    return layers::conv(
        {.filter = {size, size}, .strides = {stride, stride}, .weight_variance = 1.5, .bias_variance = 0.1});
  };
  for (const Index size : {2, 3, 5}) {
    CAPTURE(size);
    const layers::Branch body{.layers = {conv(size, 2), layers::relu(), conv(3, 1)}};
    const layers::Branch shortcut{.layers = {conv(1, 2)}};
    const Network network({conv(3, 1), layers::relu(), layers::sum({body, shortcut}), layers::relu(),
                           layers::global_average_pool()});
    check_network(network, {6, 8});
    check_network(network, {7, 5});
  }
  // Farther strides, in two steps or in one, keep them apart.
  check_network(
      Network({conv(3, 2), layers::relu(), conv(3, 2), layers::relu(), layers::global_average_pool()}),
      {8, 8});
  for (const Index stride : {3, 4})
    check_network(
        Network({conv(3, 1), layers::relu(), conv(4, stride), layers::relu(), layers::global_average_pool()}),
        {12, 12});
}

// Planes too large to stack are read where the states lie.
TEST_CASE("a flattened image of 26 x 25 agrees with the naive kernel") {
  Layers flattened = two_convolutions();
  flattened.push_back(layers::flatten());
  check_network(Network(flattened), {26, 25});
}

// The matrix of an image of more than 512 positions is put together from planes.
TEST_CASE("attention on an image of 46 x 12 agrees with the naive kernel [slow]") {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  check_network(Network({conv, layers::relu(), layers::attention(), layers::relu(), layers::flatten()}),
                {46, 12});
}

TEST_CASE("many random networks agree with the naive kernel [slow]") { check_random_networks(1000, 1200); }

}  // namespace
}  // namespace widelimit::testing
