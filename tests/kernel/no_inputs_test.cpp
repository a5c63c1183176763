// Batches without inputs: kernels without rows or columns.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/kernel/prepared_inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

/// [rows, columns] of both kernels.
template <typename Scalar>
void check_sizes(const GramResult<Scalar>& result, Index rows, Index columns) {
  for (const Matrix<Scalar>& kernel : {result.nngp, result.ntk}) {
    CHECK(kernel.rows() == rows);
    CHECK(kernel.cols() == columns);
  }
}

struct Setting {
  Network network;
  Shape shape;
};

std::vector<Setting> settings() {
  AttentionOptions sampled{.scaling = AttentionScaling::inverse_sqrt_width, .samples = 16};
  return {{Network({dense(), relu(), dense()}), {}},
          {Network({conv({.filter = {3}}), relu(), global_average_pool(), dense()}), {5}},
          {Network({conv({.filter = {2, 2}}), relu(), flatten(), dense()}), {3, 4}},
          {Network({attention(sampled), global_average_pool()}), {4}}};
}

template <typename Scalar>
Inputs<Scalar> batch_of(const Shape& shape, Index count) {
  std::vector<Index> dimensions{count};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(2);
  return Inputs<Scalar>(xt::xarray<Scalar>(xt::cast<Scalar>(random_inputs(3, dimensions))));
}

template <typename Scalar>
void check_kernels(const Setting& setting) {
  const Network& network = setting.network;
  const auto none = batch_of<Scalar>(setting.shape, 0), some = batch_of<Scalar>(setting.shape, 3);
  check_sizes(gram(network, none), 0, 0);
  check_sizes(gram(network, none, some), 0, 3);
  check_sizes(gram(network, some, none), 3, 0);
  check_sizes(gram_diagonal(network, none), 0, 1);
  const PreparedInputs<Scalar> prepared(network, some);
  check_sizes(prepared.gram_with(none), 0, 3);
  check_sizes(PreparedInputs<Scalar>(network, none).gram_with(some), 3, 0);
  CHECK(error_message<ArgumentError>([&] { return GramTiles<Scalar>(network, none).rows(); }) ==
        "GramTiles: expected at least one input, x holds none");
  InputVariances variances;
  GramOptions options;
  options.variances = &variances;
  static_cast<void>(gram(network, none, some, options));
  CHECK(variances.first.size() == 0);
  CHECK(variances.second.size() == 3);
}

}  // namespace

TEST_CASE("kernels of batches without inputs have no rows or no columns") {
  for (const Setting& setting : settings()) {
    check_kernels<double>(setting);
    check_kernels<float>(setting);
  }
}

TEST_CASE("a network that does not fit is an error for a batch without inputs too") {
  const Network network({conv({.filter = {3, 3}}), flatten()});
  CHECK(error_message<NetworkError>([&] { return gram(network, batch_of<double>({4}, 0)); }) != "no error");
  CHECK(error_message<ArgumentError>([&] {
          return gram(Network({dense()}), batch_of<double>({}, 0), batch_of<double>({4}, 2));
        }) != "no error");
}

TEST_CASE("derivatives of kernels without entries") {
  for (const Setting& setting : settings()) {
    if (setting.network.layers().size() < 3) continue;
    const Network& network = setting.network;
    const auto none = batch_of<double>(setting.shape, 0), some = batch_of<double>(setting.shape, 3);
    const GramVjp<double> gradient = gram_vjp(network, none, some, {});
    CHECK(gradient.x1.shape(0) == 0);
    CHECK(gradient.x1.dimension() == setting.shape.size() + 2);
    CHECK(gradient.x2 == xt::zeros<double>(gradient.x2.shape()));
    CHECK(gradient.x2.size() == 3 * some[0].size());
    CHECK(gram_vjp(network, none, KernelCotangents<double>{}).shape(0) == 0);
    CHECK(gram_diagonal_vjp(network, none, KernelCotangents<double>{}).shape(0) == 0);
    const std::string number = "layers[0].weight_variance";
    CHECK(gram_number_vjp(network, none, some, {}, {number}) == std::vector<double>{0});
    check_sizes(gram_jvp(network, none, some, {{number, 1.0}}), 0, 3);
  }
}

TEST_CASE("mirror images of no inputs") {
  const auto none = batch_of<double>({4}, 0), some = batch_of<double>({4}, 2);
  const FlipAverage<double> average(Network({dense(), flatten()}), none);
  check_sizes(average.gram(none), 0, 0);
  check_sizes(average.gram(none, some), 0, 2);
}

TEST_CASE("lengths and slices of no inputs") {
  const auto none = batch_of<double>({4}, 0);
  const Inputs<double> ragged(none, std::vector<Index>{});
  CHECK(ragged.is_ragged());
  const Network network({conv({.filter = {3}}), relu(), global_average_pool()});
  check_sizes(gram(network, ragged, batch_of<double>({4}, 2)), 0, 2);
  CHECK(batch_of<double>({4}, 2).slice(1, 1).size() == 0);
}

}  // namespace widelimit::testing
