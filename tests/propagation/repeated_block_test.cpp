#include "widelimit/propagation/repeated_block.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "propagation/parameters_with.hpp"
#include "propagation/token_run.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/exponents.hpp"
#include "widelimit/propagation/sampled_block.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using layers::AttentionOptions;
using widelimit::propagation_test::parameters_with;
using widelimit::testing::error_message;

namespace {

const AttentionOptions uniform{.query_key_weights = layers::QueryKeyWeights::untied};

Layer skip_and(double alpha, Layers branch) {
  return layers::sum({{std::sqrt(1 - alpha * alpha), {}}, {alpha, std::move(branch)}});
}

Layers mlp(const Parameters& parameters) {
  const double hidden = parameters.sigma_w * parameters.sigma_w;
  const double last = parameters.sigma_out.value(parameters.sigma_w);
  return {layers::rms_norm(), layers::dense({.weight_variance = hidden}),
          layers::tanh(),     layers::dense({.weight_variance = hidden}),
          layers::tanh(),     layers::dense({.weight_variance = last * last})};
}

/// The transformer of the closed forms, with the given attention.
Network transformer(const Parameters& parameters, const AttentionOptions& attention) {
  return Network({skip_and(parameters.alpha_A, {layers::rms_norm(), layers::attention(attention)}),
                  skip_and(parameters.alpha_M, mlp(parameters))});
}

AttentionOptions softmax_of(const Parameters& parameters) {
  return {.scaling = layers::AttentionScaling::inverse_sqrt_width,
          .query_key_std = parameters.sigma_A,
          .samples = 4096};
}

Matrix<double> gram_of(Index tokens, double q, double cosine) {
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, q * cosine);
  gram.diagonal().setConstant(q);
  return gram;
}

SampleOptions networks_of(Index width, Index networks) {
  SampleOptions options;
  options.width = width;
  options.networks = networks;
  options.seed = 5;
  return options;
}

}  // namespace

TEST_CASE("repeated block: the closed forms of the collapsed point") {
  for (const Parameters& parameters :
       {parameters_with(0.5, 0.5, 2.25, 16), parameters_with(0.8, 0.4, 3, 9), parameters_with(0.4, 0.8, 3, 2),
        parameters_with(0.5, 0.5, 2.25, 16, OutputGain::shared())}) {
    CAPTURE(parameters.alpha_A);
    const CollapsedPoint point = collapsed_point(parameters);
    const auto tokens = static_cast<double>(parameters.tokens);
    const BlockExponents found = block_exponents(transformer(parameters, uniform), parameters.tokens, 12);
    CHECK(found.at_fixed_point);
    CHECK(found.start_norm == Approx(point.q_star).epsilon(1e-10).scale(0));
    CHECK(std::abs(found.norm.value) < 1e-12);
    CHECK(found.angle.value == Approx(point.lambda_a_log()).epsilon(1e-10).scale(0));
    CHECK(found.last_angle.value == Approx(point.lambda_a_log()).epsilon(1e-10).scale(0));
    CHECK(found.gradient.value == Approx(gradient_exponent(point, tokens, 12)).epsilon(1e-10).scale(0));
    CHECK(found.gradient.standard_error == 0);
  }
}

TEST_CASE("repeated block: the closed forms under a causal mask, where the map is not normal") {
  const Parameters parameters = parameters_with(0.5, 0.5, 2.25, 24);
  AttentionOptions causal = uniform;
  causal.mask = AttentionMask::causal;
  const BlockExponents found = block_exponents(transformer(parameters, causal), 24, 16);
  CHECK(found.angle.value == Approx(causal_angle_exponent(parameters, 16)).epsilon(1e-10).scale(0));
  CHECK(found.gradient.value == Approx(causal_gradient_exponent(parameters, 16)).epsilon(1e-10).scale(0));
  CHECK(std::abs(found.last_angle.value - found.angle.value) > 0.05);
}

TEST_CASE("repeated block: the closed forms of usual skip connections, where norms grow for ever") {
  Parameters parameters = parameters_with(0.9, 0.7, 2.5, 12);
  parameters.skip_A = parameters.skip_M = 1;
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    AttentionOptions attention = uniform;
    attention.mask = mask;
    const Network block(
        {layers::sum({{1, {}}, {parameters.alpha_A, {layers::rms_norm(), layers::attention(attention)}}}),
         layers::sum({{1, {}}, {parameters.alpha_M, mlp(parameters)}})});
    for (const double start : {1.0, 3.0}) {
      const BlockExponents found = block_exponents(block, parameters.tokens, 9, start);
      const EqualTokenGrowth expected = equal_token_growth(parameters, start, 9, mask);
      CHECK(found.norm.value == Approx(expected.norm).epsilon(1e-11).scale(0));
      CHECK(found.angle.value == Approx(expected.angle).epsilon(1e-10).scale(0));
      CHECK(found.gradient.value == Approx(expected.gradient).epsilon(1e-11).scale(0));
    }
    CHECK_FALSE(block_exponents(block, parameters.tokens, 2).at_fixed_point);
  }
}

TEST_CASE("repeated block: exponents at the fixed point do not depend on depth") {
  // Angles fall by e^-3.13 a block, and grow by e^1.05 a block beside gradients beyond the range of double.
  for (const auto& [parameters, depths] :
       {std::pair{parameters_with(0.9, 0.9, 0.5, 16), std::vector<Index>{8, 24, 64, 300, 1000}},
        std::pair{parameters_with(0.4, 0.8, 5, 4), std::vector<Index>{8, 100, 1000}},
        std::pair{parameters_with(0.3, 0.3, 1, 2), std::vector<Index>{8, 1000}}}) {
    const CollapsedPoint point = collapsed_point(parameters);
    const auto tokens = static_cast<double>(parameters.tokens);
    for (const Index depth : depths) {
      CAPTURE(parameters.alpha_A);
      CAPTURE(depth);
      const BlockExponents found =
          block_exponents(transformer(parameters, uniform), parameters.tokens, depth);
      CHECK(found.angle.value == Approx(point.lambda_a_log()).epsilon(1e-9).scale(0));
      CHECK(found.last_angle.value == Approx(point.lambda_a_log()).epsilon(1e-9).scale(0));
      CHECK(found.gradient.value ==
            Approx(gradient_exponent(point, tokens, static_cast<double>(depth))).epsilon(1e-9).scale(1));
    }
  }
}

TEST_CASE("repeated block: causal exponents at any depth") {
  AttentionOptions causal = uniform;
  causal.mask = AttentionMask::causal;
  for (const auto& [parameters, depths] :
       {std::pair{parameters_with(0.9, 0.9, 0.5, 8), std::vector<Index>{8, 50, 200}},
        std::pair{parameters_with(0.4, 0.8, 5, 4), std::vector<Index>{8, 200}}})
    for (const Index depth : depths) {
      CAPTURE(parameters.alpha_A);
      CAPTURE(depth);
      const BlockExponents found = block_exponents(transformer(parameters, causal), parameters.tokens, depth);
      CHECK(found.angle.value == Approx(causal_angle_exponent(parameters, depth)).epsilon(1e-9).scale(0));
      CHECK(found.gradient.value ==
            Approx(causal_gradient_exponent(parameters, depth)).epsilon(1e-9).scale(1));
    }
}

TEST_CASE("repeated block: gradients beyond the range of double have a logarithm") {
  const auto found = propagate(Network({layers::dense({.weight_variance = 1e-3})}), gram_of(2, 1, 0.5), 90);
  CHECK(found.back().log_gradient.value == Approx(90 * std::log(1e-3)).epsilon(1e-12).scale(0));
  const Parameters parameters = parameters_with(0.4, 0.8, 5, 4);
  const auto chaotic = propagate(transformer(parameters, uniform), gram_of(4, 1, 0.5), 800);
  CHECK(std::isfinite(chaotic.back().log_gradient.value));
  CHECK(chaotic.back().log_gradient.value > 700);
}

TEST_CASE("repeated block: from equal tokens nothing is drawn") {
  // Draws of so many logits would take hours.
  const Parameters parameters = parameters_with(0.5, 0.5, 2.25, 16);
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    AttentionOptions sampled = softmax_of(parameters), exact = uniform;
    sampled.samples = 10'000'000;
    sampled.mask = exact.mask = mask;
    const BlockExponents found = block_exponents(transformer(parameters, sampled), 16, 8),
                         expected = block_exponents(transformer(parameters, exact), 16, 8);
    CHECK(found.start_norm == Approx(expected.start_norm).epsilon(1e-12).scale(0));
    CHECK(found.angle.value == Approx(expected.angle.value).epsilon(1e-12).scale(0));
    CHECK(found.gradient.value == Approx(expected.gradient.value).epsilon(1e-12).scale(0));
    CHECK(found.gradient.standard_error < 1e-14);
  }
}

TEST_CASE("repeated block: rows of softmax-1 depend on the logits of equal tokens too, and are drawn") {
  AttentionOptions options = softmax_of(parameters_with(0.5, 0.5, 2.25, 4));
  options.weights = layers::AttentionWeights::softmax1();
  options.samples = 64;
  const auto found = propagate(Network({layers::attention(options)}), gram_of(4, 1, 1), 1);
  CHECK(found.back().squared_norm.standard_error > 1e-4);
}

TEST_CASE("repeated block: Gram matrices of blocks without attention are the closed form's") {
  const Parameters parameters = parameters_with(0, 0.6, 2, 3);
  Matrix<double> start(3, 3);
  start << 1, 0.3, -0.2, 0.3, 2, 0.9, -0.2, 0.9, 0.7;
  const auto found = propagate(Network({skip_and(0.6, mlp(parameters))}), start, 5);
  const auto expected = BlockMap(parameters).trajectory(start, 5);
  REQUIRE(found.size() == 6);
  for (std::size_t l = 0; l < found.size(); ++l)
    CHECK((found[l].gram - expected[l]).cwiseAbs().maxCoeff() < 1e-10);
  CHECK(found[0].squared_norm.value == Approx(3.7 / 3).epsilon(1e-14).scale(0));
  CHECK(found[0].product_ratio.value == Approx(1.0 / 3.7).epsilon(1e-14).scale(0));
  const double cosine = (0.3 / std::sqrt(2) - 0.2 / std::sqrt(0.7) + 0.9 / std::sqrt(1.4)) / 3;
  CHECK(found[0].cosine.value == Approx(cosine).epsilon(1e-14).scale(0));
  CHECK(found[0].log_gradient.value == Approx(0).scale(1).epsilon(1e-14));
}

TEST_CASE("repeated block: sampled softmax gives networks' norms and angles where annealing does not") {
  Parameters parameters = parameters_with(0.6, 0.3, 1.5, 12);
  parameters.sigma_A = 3;
  const auto found = propagate(transformer(parameters, softmax_of(parameters)), gram_of(12, 1, 0.1), 3);
  const auto measured =
      measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.1), 3, networks_of(192, 48));
  const auto annealed = BlockMap(parameters).trajectory(TokenState::from_cosine(1, 0.1), 3);
  for (std::size_t l = 1; l <= 3; ++l) {
    CAPTURE(l);
    const auto agrees = [](const numerics::Estimate& theory, const numerics::Estimate& networks) {
      // Finite width moves means by some 1/width of themselves.
      const double error = std::hypot(theory.standard_error, networks.standard_error);
      return std::abs(theory.value - networks.value) < 4 * error + 0.02 * std::abs(theory.value);
    };
    CHECK(found[l].squared_norm.standard_error == 0);
    CHECK(agrees(found[l].squared_norm, measured[l].q));
    CHECK(agrees(found[l].cosine, measured[l].cosine));
    CHECK(annealed[l].q > found[l].squared_norm.value + 0.05);
  }
}

TEST_CASE("repeated block: gradients of equal tokens in networks") {
  const Parameters parameters = parameters_with(0.5, 0.5, 2.25, 16);
  const auto measured = measured_gradient_exponent(
      parameters, TokenDistribution::equal(collapsed_point(parameters).q_star), 8, networks_of(128, 32));
  const BlockExponents found = block_exponents(transformer(parameters, uniform), 16, 8);
  CHECK(std::abs(found.gradient.value - measured.log_of_mean.value) <
        3 * measured.log_of_mean.standard_error + 0.02);
}

TEST_CASE("repeated block: gradients of the layers add up to the tangent kernel") {
  const Parameters parameters = parameters_with(0.5, 0.7, 1.8, 5);
  AttentionOptions attention = uniform;
  attention.query_key_weights = layers::QueryKeyWeights::tied;
  attention.mask = AttentionMask::causal;
  const Network block(
      {layers::repeat(2, {skip_and(0.7, mlp(parameters))}),
       skip_and(0.5, {layers::rms_norm(), layers::attention(attention)}),
       layers::product({{1, {layers::dense({.bias_variance = 0.1})}}, {1, {layers::dense(), layers::erf()}}}),
       layers::concat({{0.25, {layers::dense()}}, {0.75, {layers::dense(), layers::relu()}}})});
  const Matrix<double> start = gram_of(5, 1.3, 0.4);
  const auto found = layer_gradients(block, start, 3);
  double sum = 0, matrices = 0, attention_layer = 0;
  std::vector<std::string> paths, parameters_of_attention;
  for (const LayerGradients& layer : found) {
    REQUIRE(layer.blocks.size() == 3);
    double layer_sum = 0;
    for (const numerics::Estimate& gradient : layer.blocks) layer_sum += gradient.value;
    if (!layer.parameter.empty()) {
      matrices += layer_sum;
      parameters_of_attention.push_back(layer.parameter);
      continue;
    }
    if (layer.kind == "attention") attention_layer = layer_sum;
    sum += layer_sum;
    paths.push_back(layer.path);
  }
  CHECK(parameters_of_attention == std::vector<std::string>{"query and key", "value", "output"});
  CHECK(matrices == Approx(attention_layer).epsilon(1e-9).scale(0));
  CHECK(paths == std::vector<std::string>{
                     "layers[0].times[0].layers[0].branches[1].layers[1]",
                     "layers[0].times[0].layers[0].branches[1].layers[3]",
                     "layers[0].times[0].layers[0].branches[1].layers[5]",
                     "layers[0].times[1].layers[0].branches[1].layers[1]",
                     "layers[0].times[1].layers[0].branches[1].layers[3]",
                     "layers[0].times[1].layers[0].branches[1].layers[5]", "layers[1].branches[1].layers[1]",
                     "layers[2].branches[0].layers[0]", "layers[2].branches[1].layers[0]",
                     "layers[3].branches[0].layers[0]", "layers[3].branches[1].layers[0]"});
  const Matrix<double> nothing = Matrix<double>::Zero(5, 5);
  const auto whole = run_tokens({start, nothing}, {block.layers(), block.layers(), block.layers()}, {});
  CHECK(sum == Approx(whole.back().front().tangent.diagonal().mean()).epsilon(1e-12).scale(0));
}

TEST_CASE("repeated block: norms without a fixed point") {
  // Pre-norm without a factor on the skip connection: every block adds 1 to the squared norm.
  const Network grows({layers::sum({{1, {}}, {1, {layers::rms_norm(), layers::dense()}}})});
  CHECK_FALSE(collapsed_norm(grows, 3).has_value());
  const BlockExponents found = block_exponents(grows, 3, 7);
  CHECK_FALSE(found.at_fixed_point);
  CHECK(found.start_norm == 1);
  CHECK(found.norm.value == Approx(std::log(8.0) / 7).epsilon(1e-12).scale(0));
  // The norm's rows are linear maps of the stream: angles stay, gradients grow as norms.
  CHECK(std::abs(found.angle.value) < 1e-12);
  CHECK(found.gradient.value == Approx(std::log(8.0) / 7).epsilon(1e-12).scale(0));
  CHECK(collapsed_norm(Network({layers::dense({.weight_variance = 0.5, .bias_variance = 1e8})}), 2).value() ==
        Approx(2e8).epsilon(1e-12).scale(0));
  CHECK(collapsed_norm(Network({layers::dense({.weight_variance = 2}), layers::relu()}), 2).value() == 1);
}

TEST_CASE("repeated block: what cannot be propagated") {
  const Network good({layers::dense()});
  CHECK(error_message<ArgumentError>([&] { (void)propagate(good, Matrix<double>::Zero(2, 3), 1); }) ==
        "propagate: gram must be square, got 2 x 3");
  CHECK(error_message<ArgumentError>([&] {
          (void)propagate(good, gram_of(3, 1, -0.9), 1);
        }).starts_with("propagate: gram must be positive semidefinite"));
  CHECK(error_message<ArgumentError>([&] {
          (void)propagate(good, gram_of(3, 1, 0), 0);
        }).starts_with("propagate: depth must be"));
  CHECK(error_message<ArgumentError>([&] {
          (void)block_exponents(good, 1, 4);
        }).starts_with("block_exponents: tokens must be"));
  CHECK(error_message<NetworkError>([&] {
          (void)propagate(Network({layers::dense(), layers::flatten()}), gram_of(3, 1, 0), 1);
        }) == "a block must leave as many tokens as came: expected 3 after it, got no positions");
  CHECK_THROWS_AS((void)propagate(Network({layers::dense({.weight_variance = 1e200})}), gram_of(3, 1, 0), 4),
                  NumericalError);
  std::stop_source stop;
  stop.request_stop();
  RunControl run;
  run.stop = stop.get_token();
  CHECK_THROWS_AS((void)propagate(good, gram_of(3, 1, 0), 2, run), Cancelled);
}

TEST_CASE("repeated block: networks beside the theory, layer by layer") {
  const Parameters parameters = parameters_with(0.6, 0.5, 1.5, 6);
  const Network block = transformer(parameters, softmax_of(parameters));
  const Matrix<double> start = gram_of(6, 1, 0.4);
  constexpr Index depth = 2;
  const auto theory = propagate(block, start, depth);
  const auto gradients = layer_gradients(block, start, depth);
  SampledBlockOptions options;
  options.width = 128;
  options.networks = 40;
  options.heads.count = 32;
  const SampledBlock sampled = sample_block(block, start, depth, options);
  const auto agrees = [](const numerics::Estimate& expected, const numerics::Estimate& networks) {
    return std::abs(expected.value - networks.value) <
           4 * std::hypot(expected.standard_error, networks.standard_error) + 0.04 * std::abs(expected.value);
  };
  REQUIRE(sampled.tokens.size() == depth + 1);
  for (std::size_t l = 0; l <= depth; ++l) {
    CAPTURE(l);
    CHECK(agrees(theory[l].squared_norm, sampled.tokens[l].squared_norm));
    CHECK(agrees(theory[l].cosine, sampled.tokens[l].cosine));
    CHECK((theory[l].gram - sampled.tokens[l].gram).cwiseAbs().maxCoeff() < 0.08);
  }
  REQUIRE(sampled.gradients.size() == gradients.size());
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    CAPTURE(gradients[k].path);
    CHECK(sampled.gradients[k].path == gradients[k].path);
    CHECK(sampled.gradients[k].parameter == gradients[k].parameter);
    CHECK(sampled.gradients[k].kind == gradients[k].kind);
    for (std::size_t l = 0; l < depth; ++l) {
      CAPTURE(l);
      CAPTURE(gradients[k].blocks[l].value);
      CAPTURE(sampled.gradients[k].blocks[l].value);
      CHECK(agrees(gradients[k].blocks[l], sampled.gradients[k].blocks[l]));
    }
  }
  CHECK(error_message<NetworkError>([&] {
          (void)sample_block(Network({layers::concat({{0.3, {layers::dense()}}, {0.7, {layers::dense()}}})}),
                             start, 1, {.width = 1, .networks = 2});
        }).size() > 0);
  options.networks = 1;
  CHECK(error_message<ArgumentError>([&] {
          (void)sample_block(block, start, 1, options);
        }).starts_with("sample_block: networks must be"));
}
