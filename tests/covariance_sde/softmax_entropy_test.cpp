#include "widelimit/covariance_sde/softmax_entropy.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "covariance_sde/example_covariances.hpp"
#include "covariance_sde/explicit_network.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

namespace {

CovarianceEnsemble equal_covariances(const Matrix<double>& v, Index paths) {
  CovarianceEnsemble ensemble(v.rows(), paths, {0.5});
  for (Index path = 0; path < paths; ++path) ensemble.set_covariance(0, path, v);
  return ensemble;
}

}  // namespace

TEST_CASE("softmax entropy: its deficit is that of the note") {
  // docs/theory/covariance-sde.md, section 6.2: n times the deficit for C.
  const NetworkSpec wide = shaped_attention(1000, ResidualWeights::shaped(0.5), 1);
  const double expected[] = {0.420, 0.315, 0.525};
  for (Index a = 0; a < 3; ++a)
    CHECK(1000 * (std::log(3) - softmax_entropy_expansion(wide, examples::c())(a)) ==
          Approx(expected[a]).scale(0).epsilon(1e-3));
}

TEST_CASE("softmax entropy: samples agree with the expansion, under a mask and with heads too") {
  NetworkSpec network = shaped_attention(200, ResidualWeights::shaped(0.5), 1);
  network.attention->heads = 4;
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    network.attention->mask = mask;
    const auto sampled = softmax_entropy(network, equal_covariances(examples::c(), 20'000), 0, 7);
    const Vector<double> expansion = softmax_entropy_expansion(network, examples::c());
    REQUIRE(sampled.size() == 3);
    for (Index a = mask == AttentionMask::full ? 0 : 1; a < 3; ++a) {
      const numerics::Estimate& row = sampled[static_cast<std::size_t>(a)];
      // What the expansion leaves out is of relative size 1 / n.
      const double deficit =
          std::log(mask == AttentionMask::full ? 3.0 : static_cast<double>(a + 1)) - expansion(a);
      CHECK(std::abs(row.value - expansion(a)) < 4 * row.standard_error + 0.05 * deficit);
      CHECK(row.standard_error < 0.05 * deficit);
    }
    if (mask == AttentionMask::causal) CHECK(sampled[0].value == 0);
  }
}

TEST_CASE("softmax entropy: Pre-LN's logits are of normalised tokens") {
  // Standard attention of one Pre-LN layer's input, drawn with its weights.
  NetworkSpec network = unshaped_transformer(24, ResidualWeights::unit(), Normalization::pre_layer_norm);
  NetworkOptions options;
  options.layers = {2};
  options.samples = 4000;
  options.kept = CovarianceOf::branch_inputs;
  const CovarianceEnsemble reduced = sample_networks(network, examples::c(), options);
  const auto rows = softmax_entropy(network, reduced, 0, 3);
  std::vector<double> drawn[3];
  for (Index sample = 0; sample < 4000; ++sample) {
    numerics::RandomStream stream(77, static_cast<std::uint64_t>(sample));
    ExplicitNetwork one(network, 3);
    one.start(examples::c(), stream);
    for (int layer = 0; layer < 2; ++layer) REQUIRE(one.layer(stream));
    const Eigen::MatrixXd x = layer_normalised(one.tokens());
    const Eigen::MatrixXd logits = x * normal_weights(24, 24, stream) *
                                   (x * normal_weights(24, 24, stream)).transpose() / (24 * std::sqrt(24.0));
    for (Index a = 0; a < 3; ++a) {
      const Eigen::ArrayXd p = logits.row(a).array().exp() / logits.row(a).array().exp().sum();
      drawn[a].push_back(-(p * p.log()).sum());
    }
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const numerics::Estimate mean = numerics::mean(drawn[a]);
    CHECK(std::abs(rows[a].value - mean.value) < 4 * std::hypot(rows[a].standard_error, mean.standard_error));
  }
  options.kept = CovarianceOf::tokens;
  CHECK_THROWS_WITH_AS((void)softmax_entropy(network, sample_networks(network, examples::c(), options), 0, 3),
                       "softmax_entropy: of a Pre-LN network the ensemble must hold what branches see, "
                       "NetworkOptions::kept = branch_inputs",
                       ArgumentError);
}

TEST_CASE("softmax entropy: stopped networks are left out, errors name what is wrong") {
  const NetworkSpec network = shaped_attention(50, ResidualWeights::shaped(0.5), 1);
  CovarianceEnsemble ensemble = equal_covariances(examples::c(), 10);
  for (Index path = 0; path < 10; ++path) ensemble.outcome(path) = {PathEnd::above, 0.1, 0.05, 0};
  CHECK(std::isnan(softmax_entropy(network, ensemble, 0, 1)[0].value));
  CHECK_THROWS_WITH_AS((void)softmax_entropy(network, ensemble, 1, 1),
                       "softmax_entropy: time must be the index of one of 1 times, got 1", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)softmax_entropy(shaped_resnet(50, ResidualWeights::shaped(0.5), {0, -1}), ensemble, 0, 1),
      "softmax_entropy: the network must have an attention block, got none", ArgumentError);
}
