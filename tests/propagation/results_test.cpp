#include "widelimit/propagation/results.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

using namespace widelimit;
using namespace widelimit::propagation;
using nlohmann::json;

namespace {

const std::vector<double>& column(const NamedColumns& columns, const std::string& name) {
  for (const auto& [known, values] : columns)
    if (known == name) return values;
  FAIL("no column " << name);
  return columns.front().second;
}

}  // namespace

TEST_CASE("results: exponents have the numbers of the closed forms") {
  ExponentTask task;
  task.transformer.parameters.tokens = 8;
  task.transformer.depth = 6;
  task.width = 48;
  const Parameters& parameters = task.transformer.parameters;
  const json found = exponent_results(task);
  const CollapsedPoint point = collapsed_point(parameters);
  CHECK(found.at("q_star") == point.q_star);
  CHECK(found.at("mu_delta") == point.mu_delta);
  CHECK(found.at("lambda_a") == point.lambda_a());
  CHECK(found.at("lambda_a_infinite_depth") == point.lambda_a());
  CHECK(found.at("lambda_g") == gradient_exponent(point, 8, 6));
  CHECK(found.at("phase") == phase_name(point.lambda_a(), gradient_exponent(point, 8, 6)));
  const json spread = width_results(parameters, 48, 6);
  for (const auto& [name, value] : spread.items()) CHECK(found.at(name) == value);
  CHECK(spread.at("log_gradient_growth_low").get<double>() == 6 * spread.at("lambda_g_low").get<double>());
  task.width.reset();
  task.transformer.mask = AttentionMask::causal;
  const json causal = exponent_results(task);
  CHECK((causal.at("mu_delta").is_null() && causal.at("jacobian_q_p").is_null()));
  CHECK(causal.at("lambda_a_infinite_depth") == causal_angle_exponent(parameters));
  CHECK_FALSE(causal.contains("width"));
}

TEST_CASE("results: where norms grow they are means over the depth") {
  ExponentTask task;
  task.transformer.parameters.skip_A = task.transformer.parameters.skip_M = 1;
  const json found = exponent_results(task);
  const EqualTokenGrowth growth = equal_token_growth(task.transformer.parameters, 1, 16);
  CHECK(found.at("norm_growth") == growth.norm);
  CHECK(found.at("lambda_a_log") == growth.angle);
  CHECK(found.at("lambda_g") == growth.gradient);
  CHECK_FALSE(found.contains("q_star"));
  CHECK(described(task.transformer.parameters).at("skip_A") == 1);
  CHECK_FALSE(described(Parameters{}).contains("skip_A"));
}

TEST_CASE("results: nothing stands in the place of what there is not") {
  Parameters parameters;
  parameters.alpha_A = 1;
  const json spread = width_results(parameters, 64, 4);
  CHECK((spread.at("lambda_a_low").is_null() && spread.at("lambda_a_high").is_null()));
  CHECK(spread.at("lambda_g_low").is_number());
  CHECK(phase_name(0, 0) == "ordered angles, vanishing gradients");
  CHECK(phase_name(1, 1) == "chaotic angles, exploding gradients");
}

TEST_CASE("results: columns have a number for each layer, and growths add up") {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  std::vector<MeasuredLayer> layers;
  for (int l = 0; l < 3; ++l) {
    std::vector<double> activations(2 * 4 * 5);
    for (double& number : activations) number = normal(generator) + l;
    layers.push_back(measured_layer(activations, 2, 4));
  }
  const NamedColumns columns = layer_columns(layers);
  for (const auto& [name, values] : columns) {
    CAPTURE(name);
    CHECK(values.size() == 3);
  }
  CHECK(column(columns, "q")[1] == layers[1].norm.value);
  CHECK(column(columns, "cosine_error")[2] == layers[2].cosine.standard_error);
  const std::vector<double>& growth = column(columns, "norm_growth");
  CHECK(growth[0] == 0);
  CHECK(growth[1] + growth[2] ==
        doctest::Approx(std::log(layers[2].norm.value / layers[0].norm.value)).epsilon(1e-12));
  PropagatedTokens tokens;
  tokens.cosine = {0.25, 0.5};
  const std::vector<PropagatedTokens> one{tokens};
  CHECK(column(token_columns(one), "cosine")[0] == 0.25);
  CHECK(column(token_columns(one), "cosine_error")[0] == 0.5);
}

TEST_CASE("results: fits and exponents of blocks") {
  PredictorFit fit;
  fit.predictor.weight_a = 2;
  fit.rank_correlation = 0.5;
  LossPredictor errors;
  errors.weight_a = 0.125;
  const json found = fit_results(fit, errors);
  CHECK((found.at("weight_a") == 2 && found.at("weight_a_error") == 0.125 &&
         found.at("rank_correlation") == 0.5));
  BlockExponents exponents;
  exponents.last_angle = {1.5, 0.25};
  CHECK(block_exponent_results(exponents).at("lambda_a_log_last_block") ==
        json{{"value", 1.5}, {"standard_error", 0.25}});
}
