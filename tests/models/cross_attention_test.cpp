#include "widelimit/models/cross_attention.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using models::cross_attention;
using models::CrossAttentionOptions;

/// Attention weights of the targets over the sources, from the covariance of an input with itself.
Matrix<double> target_weights(const Matrix<double>& self, Index sources, double query_key_std) {
  Matrix<double> weights =
      (query_key_std * self.block(sources, 0, self.rows() - sources, sources)).array().exp();
  for (Index a = 0; a < weights.rows(); ++a) weights.row(a) /= weights.row(a).sum();
  return weights;
}

Matrix<double> sequence_of(const xt::xarray<double>& x) {
  return Eigen::Map<const Matrix<double>>(x.data(), static_cast<Index>(x.shape(0)),
                                          static_cast<Index>(x.shape(1)));
}

TEST_CASE("cross attention: targets of any number attend to the sources, by the formula of attention") {
  constexpr Index sources = 3;
  std::vector<xt::xarray<double>> arrays;
  for (const Index positions : {7, 4, 9})
    arrays.push_back(random_inputs(static_cast<unsigned>(positions), {positions, 3}));
  const CrossAttentionOptions options{
      .sources = sources, .longest = 9, .attention = {.query_key_std = 0.8, .bias_variance = 0.1}};
  Layers layers{layers::dense({1.5, 0})};
  for (const Layer& layer : cross_attention(options)) layers.push_back(layer);
  layers.push_back(layers::global_average_pool());
  const auto found = gram<double>(Network(layers), arrays);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      const Matrix<double> x = sequence_of(arrays[static_cast<std::size_t>(i)]),
                           y = sequence_of(arrays[static_cast<std::size_t>(j)]);
      const auto covariance = [](const Matrix<double>& a, const Matrix<double>& b) -> Matrix<double> {
        return 0.5 * a * b.transpose();  // 1.5 / channels
      };
      const Matrix<double> a = target_weights(covariance(x, x), sources, 0.8),
                           b = target_weights(covariance(y, y), sources, 0.8),
                           s = a * covariance(x, y).topLeftCorner(sources, sources) * b.transpose();
      // After the dense layer both kernels are the same.
      CHECK(found.nngp(i, j) == doctest::Approx(s.mean() + 0.1).epsilon(1e-12).scale(0));
      CHECK(found.ntk(i, j) == doctest::Approx(3 * s.mean() + 0.1).epsilon(1e-12).scale(0));
    }
}

TEST_CASE("cross attention: sampled finite networks, beside the targets themselves") {
  const CrossAttentionOptions options{.sources = 2, .longest = 5};
  const Network network("cross attention", {layers::dense({1.2, 0.1}),
                                            layers::sum({{.scale = 1, .layers = models::targets_of(options)},
                                                         {.scale = 0.8, .layers = cross_attention(options)}}),
                                            layers::global_average_pool(), layers::dense()});
  finite::LimitOptions limit;
  limit.widths = {32, 64, 128};
  limit.draws = 32;
  limit.shapes = {{5}};
  const auto report = finite::check_limit(network, limit);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("cross attention: sizes and masks that are refused") {
  const auto make = [](const CrossAttentionOptions& options) { static_cast<void>(cross_attention(options)); };
  CHECK_THROWS_WITH_AS(make({.sources = 0, .longest = 4}),
                       "cross_attention: sources must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(make({.sources = 4, .longest = 4}),
                       "cross_attention: longest must be in 5..65536 (sources and targets), got 4",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      make({.sources = 1, .longest = 4, .attention = {.mask = AttentionMask::causal}}),
      "cross_attention: expected attention without masks, windows or causality; targets see all sources",
      ArgumentError);
  Layers layers{layers::dense()};
  for (const Layer& layer : cross_attention({.sources = 2, .longest = 4})) layers.push_back(layer);
  layers.push_back(layers::global_average_pool());
  CHECK_THROWS_AS(static_cast<void>(gram<double>(Network(layers), random_inputs(1, {2, 2, 3}))),
                  NetworkError);
  CHECK_THROWS_AS(static_cast<void>(gram<double>(Network(layers), random_inputs(1, {2, 5, 3}))),
                  NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
