#include "widelimit/covariance_sde/gradient_norms.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "covariance_sde/example_covariances.hpp"
#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/gradient_network.hpp"
#include "covariance_sde/p_value.hpp"
#include "covariance_sde/recorded_network.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

namespace {

/// Each normalisation, mask and block, with heads, few keys, a narrow hidden layer and weights of its own for each
/// block.
std::vector<NamedNetwork> networks_with_gradients() {
  NetworkSpec shaped = shaped_transformer(12, ResidualWeights::shaped(0.5), 0.4, {0.5, -0.75});
  shaped.attention->heads = 3;
  shaped.key_width = 2;
  shaped.feedforward->hidden_width = 7;
  shaped.feedforward_residual = ResidualWeights::shaped(0.2);
  NetworkSpec causal = shaped;
  causal.attention->mask = AttentionMask::causal;
  NetworkSpec before = unshaped_transformer(12, ResidualWeights::unit(), Normalization::pre_layer_norm);
  NetworkSpec behind = unshaped_transformer(12, ResidualWeights::unit(), Normalization::post_layer_norm);
  behind.attention->mask = AttentionMask::causal;
  return {{"shaped", shaped},
          {"causal", causal},
          {"Pre-LN", before},
          {"Post-LN", behind},
          {"multilayer perceptron", shaped_mlp(12, {0.5, -1})}};
}

/// Difference of <X_L, R> as one number of the network moves, over that of the number.
template <typename Move>
double difference(RecordedNetwork& network, const Eigen::MatrixXd& x0, const Eigen::MatrixXd& direction,
                  const Move& move) {
  constexpr double step = 1e-5;
  const auto at = [&](double by) {
    move(by);
    const double value = network.forward(x0).back().cwiseProduct(direction).sum();
    move(-by);
    return value;
  };
  return (at(step) - at(-step)) / (2 * step);
}

std::vector<std::pair<Eigen::MatrixXd*, const Eigen::MatrixXd*>> weights_beside_gradients(
    LayerWeights& weights, const LayerWeights& gradients) {
  std::vector<std::pair<Eigen::MatrixXd*, const Eigen::MatrixXd*>> pairs;
  REQUIRE(weights.heads.size() == gradients.heads.size());
  for (std::size_t h = 0; h < weights.heads.size(); ++h) {
    pairs.emplace_back(&weights.heads[h].query, &gradients.heads[h].query);
    pairs.emplace_back(&weights.heads[h].key, &gradients.heads[h].key);
    pairs.emplace_back(&weights.heads[h].value, &gradients.heads[h].value);
  }
  if (weights.hidden.size() > 0) pairs.emplace_back(&weights.hidden, &gradients.hidden);
  if (weights.output.size() > 0) pairs.emplace_back(&weights.output, &gradients.output);
  if (weights.weight.size() > 0) pairs.emplace_back(&weights.weight, &gradients.weight);
  return pairs;
}

/// Over all heads.
double squared_norm(const LayerWeights& layer, const std::string& parameter) {
  if (parameter == "hidden") return layer.hidden.squaredNorm();
  if (parameter == "output") return layer.output.squaredNorm();
  if (parameter == "weight") return layer.weight.squaredNorm();
  double sum = 0;
  for (const HeadWeights& head : layer.heads)
    sum += (parameter == "query" ? head.query : parameter == "key" ? head.key : head.value).squaredNorm();
  return sum;
}

double last_over_first(const ParameterGradientNorms& norms) {
  return norms.layers.back().value / norms.layers.front().value;
}

}  // namespace

TEST_CASE("gradient norms: gradients are what small changes make") {
  for (const NamedNetwork& named : networks_with_gradients()) {
    CAPTURE(named.name);
    numerics::RandomStream stream(5);
    ExplicitNetwork inputs(named.network, 3);
    inputs.start(examples::c(), stream);
    const Eigen::MatrixXd x0 = inputs.tokens();
    RecordedNetwork network(named.network, 2, stream);
    const Eigen::MatrixXd direction =
        Eigen::MatrixXd::NullaryExpr(3, 12, [&stream] { return stream.normal(); });
    const auto gradients = network.backward(network.forward(x0), direction);
    for (std::size_t l = 0; l < 2; ++l)
      for (const auto& [weight, gradient] :
           weights_beside_gradients(network.weights()[l], gradients.layers[l])) {
        REQUIRE(weight->size() == gradient->size());
        for (const Eigen::Index i : {Eigen::Index{0}, weight->size() / 3, weight->size() - 1})
          CHECK(difference(network, x0, direction, [&](double by) { weight->data()[i] += by; }) ==
                doctest::Approx(gradient->data()[i]).scale(1).epsilon(1e-6));
      }
    Eigen::MatrixXd moved = x0;
    for (const Eigen::Index i : {0, 7, 35})
      CHECK(difference(network, moved, direction, [&](double by) { moved.data()[i] += by; }) ==
            doctest::Approx(gradients.tokens[0].data()[i]).scale(1).epsilon(1e-6));
  }
}

TEST_CASE("gradient norms: products with weights that are not drawn are those of one matrix") {
  // <g, x W> = <g W^T, x>, and the squared gradient is that of x^T g; of few tokens, and of as many as whole weights
  // are drawn for.
  numerics::RandomStream stream(4);
  for (const Eigen::Index tokens : {1, 3, 9}) {
    const Eigen::MatrixXd x = normal_weights(tokens, 12, stream), g = normal_weights(tokens, 7, stream);
    const GaussianProduct product(std::make_shared<const ProductInput>(x), 7, stream);
    const double forward = g.cwiseProduct(product.forward()).sum();
    CHECK(product.backward(g, stream).cwiseProduct(x).sum() ==
          doctest::Approx(forward).scale(1).epsilon(1e-12));
    CHECK(product.squared_gradient(g) ==
          doctest::Approx((x.transpose() * g).squaredNorm()).scale(0).epsilon(1e-12));
  }
}

TEST_CASE("gradient norms: without weights they have the distribution of networks with weights") {
  constexpr Index networks = 1500, depth = 3;
  for (const NamedNetwork& named : networks_with_gradients()) {
    CAPTURE(named.name);
    const std::vector<std::string> parameters = parameters_of(named.network);
    // By the input and by each parameter in the first layer.
    std::vector<std::vector<double>> reduced(1 + parameters.size()), with_weights = reduced;
    for (Index sample = 0; sample < networks; ++sample) {
      numerics::RandomStream stream(9, static_cast<std::uint64_t>(sample));
      ExplicitNetwork inputs(named.network, 3);
      inputs.start(examples::c(), stream);
      const GradientNetwork drawn(named.network, depth, inputs.tokens(), stream);
      const Eigen::MatrixXd direction = normal_weights(3, 12, stream);
      const SquaredGradients squares = drawn.backward(direction, stream);
      reduced[0].push_back(squares.tokens[0]);
      for (std::size_t p = 0; p < parameters.size(); ++p) reduced[p + 1].push_back(squares.parameters[p][0]);
      numerics::RandomStream other(10, static_cast<std::uint64_t>(sample));
      inputs.start(examples::c(), other);
      const RecordedNetwork recorded(named.network, depth, other);
      const auto gradients =
          recorded.backward(recorded.forward(inputs.tokens()), normal_weights(3, 12, other));
      with_weights[0].push_back(gradients.tokens[0].squaredNorm());
      for (std::size_t p = 0; p < parameters.size(); ++p)
        with_weights[p + 1].push_back(squared_norm(gradients.layers[0], parameters[p]));
    }
    // 25 tests at 1e-3 / 25 each.
    for (std::size_t k = 0; k < reduced.size(); ++k) {
      CAPTURE(k);
      CHECK(examples::p_value(reduced[k], with_weights[k]) > 4e-5);
    }
  }
}

TEST_CASE("gradient norms: a ResNet keeps them, its output weights see gamma^2") {
  const NetworkSpec network = shaped_resnet(32, ResidualWeights::shaped(0.3), {0, -1});
  const GradientNorms norms =
      gradient_norms(network, examples::two_tokens(), {.depth = 6, .networks = 64, .seed = 2});
  REQUIRE(norms.tokens.size() == 7);
  REQUIRE(norms.parameters.size() == 2);
  CHECK(norms.parameters[1].parameter == "output");
  // The backward pass preserves the mean as the forward pass does: lambda^2 + gamma^2 = 1.
  for (const numerics::Estimate& one : norms.tokens) CHECK(std::abs(one.value - 1) < 4 * one.standard_error);
  // E |gradient of W_post|^2 / (m n) = gamma^2 E |H|^2 |G|^2 c / n_h / (m n), at the last layer with G = R.
  const numerics::Estimate last = norms.parameters[1].layers.back();
  CHECK(last.value == doctest::Approx(0.3).scale(0).epsilon(0.25));
}

TEST_CASE(
    "gradient norms: Pre-LN's first layers see more than its last; shaped and Post-LN see the same in all") {
  const auto grown = [](const NetworkSpec& network) {
    const GradientNorms norms =
        gradient_norms(network, examples::two_tokens(), {.depth = 12, .networks = 256, .seed = 1});
    return last_over_first(norms.parameters.back());
  };
  const auto unit = ResidualWeights::unit();
  const double shaped = grown(shaped_transformer(48, ResidualWeights::shaped(0.1), 1, {0, -1}));
  const double before = grown(unshaped_transformer(48, unit, Normalization::pre_layer_norm));
  const double behind = grown(unshaped_transformer(48, unit, Normalization::post_layer_norm));
  CAPTURE(shaped);
  CAPTURE(before);
  CAPTURE(behind);
  CHECK(std::abs(std::log(shaped)) < 1);
  CHECK(before < 0.5);
  CHECK(std::abs(std::log(behind)) < 1);
}

TEST_CASE("gradient norms: equal bits for any number of threads, errors name the option") {
  const NetworkSpec network = networks_with_gradients()[1].network;
  GradientOptions options{.depth = 3, .networks = 5, .seed = 3};
  options.run.threads = 1;
  const GradientNorms one = gradient_norms(network, examples::c(), options);
  options.run.threads = 3;
  const GradientNorms three = gradient_norms(network, examples::c(), options);
  CHECK(one.tokens[0].value == three.tokens[0].value);
  CHECK(one.parameters[4].layers[1].value == three.parameters[4].layers[1].value);
  options.networks = 1;
  CHECK_THROWS_WITH_AS((void)gradient_norms(network, examples::c(), options),
                       "gradient_norms: networks must be at least 2, got 1", ArgumentError);
  options.networks = 2;
  options.depth = 0;
  CHECK_THROWS_WITH_AS((void)gradient_norms(network, examples::c(), options),
                       "gradient_norms: depth must be at least 1, got 0", ArgumentError);
}
