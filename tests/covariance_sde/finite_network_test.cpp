#include "widelimit/covariance_sde/finite_network.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "covariance_sde/example_covariances.hpp"
#include "covariance_sde/p_value.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/statistics.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;
using examples::p_value;

namespace {

using Dense = Matrix<double>;

NetworkOptions options_for(std::vector<Index> layers, Index samples, std::uint64_t seed = 1) {
  NetworkOptions options;
  options.layers = std::move(layers);
  options.samples = samples;
  options.seed = seed;
  return options;
}

/// Every branch of the reduction: masks, few keys, wide hidden layers, Pre-LN, more tokens than Bartlett's
/// factor allows.
std::vector<NamedNetwork> small_networks() {
  const ResidualWeights residual = ResidualWeights::shaped(0.5);
  NetworkSpec causal = shaped_attention(16, residual, 0.5);
  causal.attention->mask = AttentionMask::causal;
  NetworkSpec few_keys = shaped_attention(16, residual, 0.3);
  few_keys.key_width = 2;
  NetworkSpec wide = shaped_resnet(16, residual, {0, -1});
  wide.feedforward->hidden_width = 40;
  NetworkSpec narrow = shaped_transformer(5, residual, 0.5, {0, -1});
  NetworkSpec heads = shaped_transformer(16, residual, 0.3, {0, -1});
  heads.attention->heads = 4;
  heads.key_width = 2;
  heads.attention->mask = AttentionMask::causal;
  NetworkSpec two_weights = shaped_transformer(16, residual, 0.5, {0, -1});
  two_weights.feedforward_residual = ResidualWeights::shaped(0.1);
  return {{"four heads", heads},
          {"two residual weights", two_weights},
          {"shaped transformer", shaped_transformer(16, residual, 0.5, {0, -1})},
          {"causal attention", causal},
          {"two keys", few_keys},
          {"wide hidden layer", wide},
          {"width 5", narrow},
          {"multilayer perceptron", shaped_mlp(16, {0.5, -1})},
          {"unshaped", unshaped_transformer(16, ResidualWeights::unit(), Normalization::none)},
          {"Pre-LN", unshaped_transformer(16, ResidualWeights::unit(), Normalization::pre_layer_norm)}};
}

void check_reduction(Index samples) {
  for (const NamedNetwork& named : small_networks()) {
    CAPTURE(named.name);
    const auto& network = named.network;
    NetworkOptions options = options_for({3}, samples);
    const CovarianceEnsemble reduced = sample_networks(network, examples::c(), options);
    options.sampling = NetworkSampling::explicit_weights;
    options.seed = 2;
    const CovarianceEnsemble with_weights = sample_networks(network, examples::c(), options);
    // 27 tests at 1e-3 / 27 each.
    CHECK(p_value(reduced.entries(0, 0, 0), with_weights.entries(0, 0, 0)) > 5e-5);
    CHECK(p_value(reduced.entries(0, 1, 2), with_weights.entries(0, 1, 2)) > 5e-5);
    CHECK(p_value(reduced.correlations(0, 0, 2), with_weights.correlations(0, 0, 2)) > 5e-5);
  }
}

struct OneStep {
  Vector<double> mean, mean_error;  // of n (V' - V)
  Matrix<double> covariance, covariance_error;
};

OneStep one_step(const NetworkSpec& network, const Dense& v, Index samples) {
  const Vector<double> start = upper_triangle(v);
  const Index size = start.size();
  const auto n = static_cast<double>(network.width);
  OneStep step{Vector<double>::Zero(size), Vector<double>::Zero(size), Dense::Zero(size, size),
               Dense::Zero(size, size)};
  const Index batch = std::min<Index>(samples, 100'000);
  for (Index done = 0; done < samples; done += batch) {
    const CovarianceEnsemble ensemble =
        sample_networks(network, v, options_for({1}, batch, static_cast<std::uint64_t>(1 + done)));
    for (Index path = 0; path < batch; ++path) {
      const Vector<double> change = upper_triangle(ensemble.covariance(0, path)) - start;
      const Dense product = n * change * change.transpose();
      step.mean += n * change;
      step.covariance += product;
      step.covariance_error += product.cwiseAbs2();
    }
  }
  const auto total = static_cast<double>(samples);
  step.mean /= total;
  step.covariance /= total;
  step.mean_error = (n * step.covariance.diagonal() / total).cwiseSqrt();
  step.covariance_error = ((step.covariance_error / total - step.covariance.cwiseAbs2()) / total).cwiseSqrt();
  return step;
}

/// Largest deviation of the one-step mean from b and covariance from Sigma, in standard errors. The mean has
/// the drift that is exact at this width.
std::pair<double, double> deviations(const OneStep& step, const SdeModel& model, Index width,
                                     const Dense& v) {
  const Vector<double> b = upper_triangle(drift(with_finite_width_drift(model, width), v));
  return {(step.mean - b).cwiseQuotient(step.mean_error).cwiseAbs().maxCoeff(),
          (step.covariance - diffusion(model, v)).cwiseQuotient(step.covariance_error).cwiseAbs().maxCoeff()};
}

NetworkSpec several_heads(Index width) {
  NetworkSpec network = shaped_transformer(width, ResidualWeights::shaped(0.5), 1, {0.5, -0.75});
  network.attention->heads = 4;
  network.feedforward_residual = ResidualWeights::shaped(0.2);
  return network;
}

void check_one_step(Index width, Index samples) {
  const ResidualWeights residual = ResidualWeights::shaped(0.5);
  const NamedNetwork networks[] = {{"ResNet", shaped_resnet(width, residual, {0.5, -0.75})},
                                   {"attention", shaped_attention(width, residual, 1)},
                                   {"transformer", shaped_transformer(width, residual, 1, {0.5, -0.75})},
                                   {"multilayer perceptron", shaped_mlp(width, {0.5, -0.75})},
                                   {"four heads, two residual weights", several_heads(width)}};
  for (const NamedNetwork& named : networks) {
    CAPTURE(named.name);
    const auto& network = named.network;
    const OneStep step = one_step(network, examples::c(), samples);
    const SdeModel model = limiting_model(network);
    const auto [mean, covariance] = deviations(step, model, width, examples::c());
    CHECK(mean < 4);
    CHECK(covariance < 4);
    // The check would see the noise of a neighbouring architecture.
    SdeModel wrong = model;
    wrong.linear_noise *= 1.15;
    CHECK(deviations(step, wrong, width, examples::c()).second > 6);
  }
}

}  // namespace

TEST_CASE("finite network: the reduction to m x m matrices has the distribution of the weights") {
  check_reduction(1500);
}

TEST_CASE(
    "finite network: the reduction to m x m matrices has the distribution of the weights, sharper [slow]") {
  check_reduction(40'000);
}

TEST_CASE("finite network: one step has mean b / n and covariance Sigma / n") {
  check_one_step(1000, 12'000);
}

TEST_CASE("finite network: one step has mean b / n and covariance Sigma / n, sharper [slow]") {
  check_one_step(2000, 100'000);
}

TEST_CASE("finite network: the attention drift alone, at the width that resolves it [slow]") {
  // Noise of the mean is sqrt(n Sigma / N): only a small width makes the drift visible, and its bias there is
  // O(1 / n).
  const NetworkSpec network = shaped_attention(100, ResidualWeights::shaped(0.5), 1);
  const OneStep step = one_step(network, examples::c(), 3'000'000);
  const SdeModel model = limiting_model(network);
  CHECK(deviations(step, model, 100, examples::c()).first < 4);
  SdeModel none = model;
  none.attention_drift = 0;
  CHECK(deviations(step, none, 100, examples::c()).first > 20);
}

TEST_CASE("finite network: heads share the attention noise [slow]") {
  // The noise of width n differs from its limit by a part of 1 / n: 4 % at 200, less than 400,000 networks show at this
  // width.
  const Index width = 12'800;
  NetworkSpec network = shaped_attention(width, ResidualWeights::shaped(1), 0.3);
  network.attention->heads = 4;
  const OneStep step = one_step(network, examples::c(), 400'000);
  const SdeModel model = limiting_model(network);
  CHECK(deviations(step, model, width, examples::c()).second < 4);
  SdeModel undivided = model;
  undivided.attention_noise *= 4;
  CHECK(deviations(step, undivided, width, examples::c()).second > 20);
}

TEST_CASE("finite network: equal bits for any number of threads, other bits than the SDE") {
  for (const NamedNetwork& named : small_networks()) {
    CAPTURE(named.name);
    const auto& network = named.network;
    NetworkOptions options = options_for({1, 4}, 40);
    options.threads = 1;
    const CovarianceEnsemble one = sample_networks(network, examples::c(), options);
    options.threads = 3;
    const CovarianceEnsemble three = sample_networks(network, examples::c(), options);
    for (Index path = 0; path < 40; ++path) CHECK(one.covariance(1, path) == three.covariance(1, path));
    CHECK(one.times()[1] == Approx(4.0 / static_cast<double>(network.width)));
  }
}

TEST_CASE("finite network: one input keeps its mean and grows by the exact second moment") {
  const ResidualWeights residual = ResidualWeights::shaped(0.5);
  const int depth = 10;
  for (const bool attention : {false, true}) {
    const Index n = 30;
    const NetworkSpec network =
        attention ? shaped_attention(n, residual, 1) : shaped_resnet(n, residual, {0, -1});
    const auto v = sample_networks(network, Dense{{1.0}}, options_for({depth}, 40'000)).entries(0, 0, 0);
    std::vector<double> squares = v;
    for (double& x : squares) x *= x;
    const numerics::Estimate mean = numerics::mean(v), square = numerics::mean(squares);
    const double growth = attention ? attention_growth_variance(residual, n)
                                    : feedforward_growth_variance(residual, shaped_slopes({0, -1}, n), n);
    CHECK(std::abs(mean.value - 1) < 4 * mean.standard_error);
    CHECK(std::abs(square.value - std::pow(1 + growth, depth)) < 4 * square.standard_error);
  }
}

TEST_CASE("finite network: the interventions of figure 3 end where they must") {
  const Index n = 300;
  const auto ends = [&](const NetworkSpec& network) {
    const CovarianceEnsemble ensemble =
        sample_networks(network, examples::two_tokens(), options_for({10}, 512));
    return std::pair{numerics::mean(ensemble.mean_absolute_correlations(0)).value,
                     numerics::quantile(numerics::sorted(ensemble.mean_absolute_covariances(0)), 0.5).value};
  };
  const auto networks = attention_interventions(n, ResidualWeights::shaped(0.5), 1);
  REQUIRE(networks.size() == 8);
  // Figure 3 at layer 10 by an independent simulation; ours: docs/experiments/shaped-transformer.md.
  const std::pair<double, double> expected[] = {{0.217, 0.20}, {0.200, 2.0e-4}, {1, 5.6e3},    {0.480, 0.54},
                                                {1, 5.8e3},    {0.202, 2.2e-4}, {0.999, 0.58}, {0.999, 0.63}};
  for (std::size_t k = 0; k < 8; ++k) {
    CAPTURE(networks[k].name);
    const auto [correlation, covariance] = ends(networks[k].network);
    CHECK(correlation == Approx(expected[k].first).scale(0).epsilon(0.08));
    CHECK(covariance == Approx(expected[k].second).scale(0).epsilon(0.12));
  }
}

TEST_CASE("finite network: the limiting model reads the blocks back") {
  const ResidualWeights residual = ResidualWeights::shaped(0.3);
  const SdeModel model = limiting_model(shaped_transformer(400, residual, 0.7, {0.5, -0.75}));
  const SdeModel expected = transformer_model(residual, 0.7, {0.5, -0.75});
  CHECK(model.linear_noise == Approx(expected.linear_noise));
  CHECK(model.attention_noise == Approx(expected.attention_noise));
  CHECK(model.slopes.minus == Approx(-0.75).scale(0).epsilon(1e-12));
  CHECK_THROWS_AS((void)limiting_model(unshaped_transformer(100, residual, Normalization::none)),
                  ArgumentError);
}

TEST_CASE("finite network: each block has its residual weights, heads divide the noise of attention") {
  NetworkSpec network = shaped_transformer(400, ResidualWeights::shaped(0.3), 0.7, {0.5, -0.75});
  network.feedforward_residual = ResidualWeights::shaped(0.1);
  network.attention->heads = 8;
  network.attention->mask = AttentionMask::causal;
  const SdeModel model = limiting_model(network);
  const SdeModel attention = attention_model(ResidualWeights::shaped(0.3), 0.7, AttentionMask::causal);
  CHECK(model.attention_noise == Approx(attention.attention_noise / 8));
  CHECK(model.attention_drift == attention.attention_drift);
  CHECK(model.mask == AttentionMask::causal);
  CHECK(model.relu_drift == Approx(0.1));
  CHECK(model.linear_noise == Approx(0.3 * 1.7 + 0.2));
}

TEST_CASE("finite network: a multilayer perceptron has the limit of its slopes, and no blocks") {
  const SdeModel model = limiting_model(shaped_mlp(400, {0.5, -0.75})), expected = mlp_model({0.5, -0.75});
  CHECK(model.relu_drift == 1);
  CHECK(model.linear_noise == expected.linear_noise);
  CHECK(model.slopes.plus == Approx(0.5).scale(0).epsilon(1e-12));
  NetworkSpec both = shaped_mlp(16, {0, -1});
  both.attention = AttentionBlock{};
  CHECK_THROWS_WITH_AS(
      (void)sample_networks(both, examples::c(), options_for({1}, 2)),
      "sample_networks: a multilayer perceptron has neither blocks nor a normalisation, got some as well",
      ArgumentError);
}

TEST_CASE("finite network: what branches see has the distribution of the weights, of Pre-LN too") {
  const NetworkSpec network =
      unshaped_transformer(12, ResidualWeights::unit(), Normalization::pre_layer_norm);
  NetworkOptions options = options_for({1, 3}, 1500);
  options.kept = CovarianceOf::branch_inputs;
  const CovarianceEnsemble reduced = sample_networks(network, examples::c(), options);
  CHECK(reduced.kept() == CovarianceOf::branch_inputs);
  CHECK(reduced.covariance(1, 3).diagonal().isApproxToConstant(1, 1e-12));
  options.sampling = NetworkSampling::explicit_weights;
  options.seed = 2;
  const CovarianceEnsemble with_weights = sample_networks(network, examples::c(), options);
  CHECK(with_weights.covariance(1, 3).diagonal().isApproxToConstant(1, 1e-12));
  for (const Index time : {0, 1}) {
    CHECK(p_value(reduced.entries(time, 0, 1), with_weights.entries(time, 0, 1)) > 2e-4);
    CHECK(p_value(reduced.entries(time, 1, 2), with_weights.entries(time, 1, 2)) > 2e-4);
  }
  // Without a normalisation that is V.
  options.sampling = NetworkSampling::reduced;
  NetworkOptions tokens = options;
  tokens.kept = CovarianceOf::tokens;
  const NetworkSpec shaped = shaped_transformer(12, ResidualWeights::shaped(0.5), 1, {0, -1});
  CHECK(sample_networks(shaped, examples::c(), options).covariance(1, 7) ==
        sample_networks(shaped, examples::c(), tokens).covariance(1, 7));
}

TEST_CASE("finite network: errors name the option") {
  const ResidualWeights residual = ResidualWeights::shaped(0.5);
  const auto run = [&](const NetworkSpec& network, const NetworkOptions& options) {
    (void)sample_networks(network, examples::c(), options);
  };
  NetworkSpec heads = shaped_attention(16, residual, 1);
  const auto refused = [&](const std::string& message) {
    CHECK_THROWS_WITH_AS(run(heads, options_for({1}, 2)), message.c_str(), ArgumentError);
  };
  heads.attention->heads = 3;
  refused("sample_networks: heads must divide the width, got 3 and 16");
  heads.attention->heads = 0;
  refused("sample_networks: heads must be at least 1, got 0");
  heads.attention->heads = 8;
  refused(
      "sample_networks: slices of width / heads = 2 channels have no reduction, being fewer than 3 tokens, "
      "sample it by explicit weights");
  heads.attention->heads = 4;
  heads.normalization = Normalization::pre_layer_norm;
  refused("sample_networks: Pre-LN with 4 heads has no reduction, sample it by explicit weights");
  heads.normalization = Normalization::post_layer_norm;
  refused("sample_networks: Post-LN has no reduction, sample it by explicit weights");
  NetworkOptions explicit_weights = options_for({2}, 3);
  explicit_weights.sampling = NetworkSampling::explicit_weights;
  const CovarianceEnsemble normalised = sample_networks(heads, examples::c(), explicit_weights);
  CHECK(normalised.covariance(0, 1).diagonal().isApproxToConstant(1, 1e-12));
  CHECK_THROWS_WITH_AS(
      run(shaped_attention(16, ResidualWeights::unit(), 1), options_for({1}, 2)),
      "sample_networks: lambda^2 + gamma^2 must be 1 except in the unshaped baselines (standard softmax, "
      "ReLU), got lambda = gamma = 1",
      ArgumentError);
  CHECK_NOTHROW(
      run(unshaped_transformer(16, ResidualWeights::unit(), Normalization::none), options_for({1}, 2)));
  CHECK_THROWS_WITH_AS(run(shaped_attention(16, residual, 0), options_for({1}, 2)),
                       "sample_networks: temperature must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(run(shaped_attention(2, residual, 1), options_for({1}, 2)),
                       "sample_networks: width must be at least 3, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(
      run(unshaped_transformer(3, residual, Normalization::pre_layer_norm), options_for({1}, 2)),
      "sample_networks: width must be at least 4, got 3", ArgumentError);
  CHECK_NOTHROW(run(shaped_attention(3, residual, 1), options_for({1}, 2)));
  CHECK_THROWS_WITH_AS(run(shaped_attention(16, residual, 1), options_for({2, 2}, 2)),
                       "sample_networks: layers must increase from at least 1, got 2 after 2", ArgumentError);
  CHECK_THROWS_WITH_AS(run(shaped_attention(16, residual, 1), options_for({1'000'000'000'000}, 2)),
                       "sample_networks: the depth must be at most 1000000000, got 1000000000000",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(run(shaped_attention(1'000'000'000'000, residual, 1), options_for({2}, 2)),
                       "sample_networks: the width must be at most 1000000000, got 1000000000000",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(run(shaped_attention(16, residual, 1), options_for({}, 2)),
                       "sample_networks: layers must hold at least the depth, got none", ArgumentError);
  CHECK_THROWS_WITH_AS(run({.width = 16}, options_for({1}, 2)),
                       "sample_networks: a network needs an attention or a feedforward block, got neither",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)feedforward_layer(shaped_attention(16, residual, 1), examples::c(), Dense(3, 16), {}),
      "feedforward_layer: the network must have a feedforward block, got none", ArgumentError);
}
