#include "widelimit/propagation/results.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "widelimit/propagation/attention_map.hpp"

namespace widelimit::propagation {

using nlohmann::json;

namespace {

/// Where norms grow for ever: means over the network's depth, from norm 1.
json growth_results(const Transformer& transformer) {
  const Parameters& parameters = transformer.parameters;
  const EqualTokenGrowth growth = equal_token_growth(parameters, 1, transformer.blocks(), transformer.mask);
  return {{"depth", transformer.blocks()},
          {"start_norm", 1},
          {"norm_growth", growth.norm},
          {"lambda_a", std::expm1(growth.angle)},
          {"lambda_a_log", growth.angle},
          {"lambda_g", growth.gradient},
          {"phase", phase_name(growth.angle, growth.gradient)}};
}

json fixed_point_results(const ExponentTask& task) {
  const Transformer& transformer = task.transformer;
  const Parameters& parameters = transformer.parameters;
  ExponentOptions options = transformer.exponent_options();
  options.formula = task.formula;
  const CollapsedPoint point = collapsed_point(parameters);
  const double lambda_a = exponent(Exponent::angle, parameters, options),
               lambda_g = exponent(Exponent::gradient, parameters, options);
  const bool causal = transformer.mask == AttentionMask::causal;
  json results = {{"depth", transformer.depth},
                  {"q_star", point.q_star},
                  {"q_M", point.q_M},
                  {"k_out", point.k_out},
                  {"f", point.f},
                  {"mu_delta", point.mu_delta},
                  {"mu_q", point.mu_q},
                  {"lambda_a", lambda_a},
                  {"lambda_a_log", std::log1p(lambda_a)},
                  {"lambda_g", lambda_g},
                  {"lambda_g_infinite_depth", infinite_gradient_exponent(point)},
                  {"phase", phase_name(lambda_a, lambda_g)},
                  {"published", task.formula == Formula::published},
                  {"lambda_a_infinite_depth", causal ? causal_angle_exponent(parameters) : lambda_a}};
  const Eigen::Matrix2d jacobian = collapsed_jacobian(parameters);
  results["jacobian_q_p"] = {{jacobian(0, 0), jacobian(0, 1)}, {jacobian(1, 0), jacobian(1, 1)}};
  // Both are derivatives of the map of tokens that are alike.
  if (causal) results["mu_delta"] = results["jacobian_q_p"] = nullptr;
  return results;
}

/// One column of means and one of their standard errors.
template <typename Element, typename EstimateOf>
void append(NamedColumns& columns, const char* name, std::span<const Element> elements,
            const EstimateOf& estimate_of) {
  std::vector<double> values, errors;
  for (const Element& element : elements) {
    const numerics::Estimate estimate = estimate_of(element);
    values.push_back(estimate.value);
    errors.push_back(estimate.standard_error);
  }
  columns.emplace_back(name, std::move(values));
  columns.emplace_back(std::string(name) + "_error", std::move(errors));
}

}  // namespace

json described(const Parameters& parameters) {
  json result{
      {"tokens", parameters.tokens},      {"sigma_A", parameters.sigma_A},
      {"alpha_A", parameters.alpha_A},    {"alpha_M", parameters.alpha_M},
      {"sigma_w", parameters.sigma_w},    {"sigma_out", parameters.sigma_out.value(parameters.sigma_w)},
      {"mlp_depth", parameters.mlp_depth}};
  if (parameters.skip_A) result["skip_A"] = *parameters.skip_A;
  if (parameters.skip_M) result["skip_M"] = *parameters.skip_M;
  return result;
}

std::string phase_name(double lambda_a, double lambda_g) {
  return fmt::format("{} angles, {} gradients", lambda_a > 0 ? "chaotic" : "ordered",
                     lambda_g > 0 ? "exploding" : "vanishing");
}

json exponent_results(const ExponentTask& task) {
  const Transformer& transformer = task.transformer;
  const Parameters& parameters = transformer.parameters;
  json results = has_fixed_norm(parameters) ? fixed_point_results(task) : growth_results(transformer);
  results["causal"] = transformer.mask == AttentionMask::causal;
  results["one_block_from_1"] = one_block_exponent_limit(parameters, 1, transformer.mask);
  results["largest_annealed_gap"] =
      largest_annealed_gap(static_cast<double>(parameters.tokens), parameters.sigma_A);
  if (task.width) results.update(width_results(parameters, *task.width, transformer.blocks()));
  return results;
}

json width_results(const Parameters& parameters, Index width, Index blocks) {
  const WidthSpread spread = width_spread(parameters, width, blocks);
  const std::optional<Index> limit = limit_depth(parameters, width);
  const auto length = static_cast<double>(blocks);
  const auto& angle = spread.lambda_a_log;
  const json none = nullptr;
  return {{"width", width},
          {"lambda_a_low", angle ? json(std::expm1(angle->low)) : none},
          {"lambda_a_high", angle ? json(std::expm1(angle->high)) : none},
          {"lambda_g_low", spread.lambda_g.low},
          {"lambda_g_high", spread.lambda_g.high},
          {"log_gradient_growth_low", length * spread.lambda_g.low},
          {"log_gradient_growth_high", length * spread.lambda_g.high},
          {"angle_variance", spread.angle_variance},
          {"gradient_variance", spread.gradient_variance},
          {"limit_depth", limit ? json(*limit) : none}};
}

json fit_results(const PredictorFit& fit, const LossPredictor& errors) {
  return {{"weight_a", fit.predictor.weight_a},
          {"weight_g", fit.predictor.weight_g},
          {"bias", fit.predictor.bias},
          {"weight_a_error", errors.weight_a},
          {"weight_g_error", errors.weight_g},
          {"bias_error", errors.bias},
          {"root_mean_square_error", fit.root_mean_square_error},
          {"explained_variance", fit.explained_variance},
          {"rank_correlation", fit.rank_correlation}};
}

FitTask read_fit(ConfigReader& fields) {
  FitTask task;
  if (fields.has("classes")) task.ceiling = std::log(static_cast<double>(fields.integer("classes")));
  task.bootstrap = fields.integer("bootstrap");
  task.seed = static_cast<std::uint64_t>(fields.integer("seed"));
  return task;
}

json block_exponent_results(const BlockExponents& exponents) {
  const auto named = [](const numerics::Estimate& estimate) {
    return json{{"value", estimate.value}, {"standard_error", estimate.standard_error}};
  };
  const bool has_angles = exponents.no_angles.empty();
  const auto named_angle = [&](const numerics::Estimate& estimate) {
    return has_angles ? named(estimate) : json(nullptr);
  };
  return {{"start_norm", exponents.start_norm},
          {"at_fixed_point", exponents.at_fixed_point},
          {"norm_growth", named(exponents.norm)},
          {"lambda_a_log", named_angle(exponents.angle)},
          {"lambda_a_log_last_block", named_angle(exponents.last_angle)},
          {"lambda_g", named(exponents.gradient)},
          {"no_angles", has_angles ? json(nullptr) : json(exponents.no_angles)}};
}

NamedColumns token_columns(std::span<const PropagatedTokens> tokens) {
  NamedColumns columns;
  append(columns, "q", tokens, [](const PropagatedTokens& one) { return one.squared_norm; });
  append(columns, "cosine", tokens, [](const PropagatedTokens& one) { return one.cosine; });
  append(columns, "log_gradient", tokens, [](const PropagatedTokens& one) { return one.log_gradient; });
  append(columns, "product_ratio", tokens, [](const PropagatedTokens& one) { return one.product_ratio; });
  return columns;
}

NamedColumns measured_columns(std::span<const MeasuredState> states) {
  NamedColumns columns;
  append(columns, "q", states, [](const MeasuredState& state) { return state.q; });
  append(columns, "cosine", states, [](const MeasuredState& state) { return state.cosine; });
  return columns;
}

NamedColumns layer_columns(std::span<const MeasuredLayer> layers) {
  NamedColumns columns;
  const auto numbers = [&](const char* name, const auto& number_of) {
    std::vector<double> values;
    for (const MeasuredLayer& layer : layers) values.push_back(number_of(layer));
    columns.emplace_back(name, std::move(values));
  };
  append(columns, "q", layers, [](const MeasuredLayer& layer) { return layer.norm; });
  numbers("q_spread", [](const MeasuredLayer& layer) { return layer.norm_spread.value; });
  numbers("largest_share", [](const MeasuredLayer& layer) { return layer.largest_share.value; });
  numbers("largest_token",
          [](const MeasuredLayer& layer) { return static_cast<double>(layer.largest_token); });
  append(columns, "cosine", layers, [](const MeasuredLayer& layer) { return layer.cosine; });
  append(columns, "product_ratio", layers, [](const MeasuredLayer& layer) { return layer.product_ratio; });
  double before = layers.empty() ? 0 : layers.front().norm.value;
  numbers("norm_growth", [&before](const MeasuredLayer& layer) {
    return std::log(layer.norm.value / std::exchange(before, layer.norm.value));
  });
  columns.emplace_back("angle_growth", angle_growth(layers).layers);
  numbers("cosine_gap", [](const MeasuredLayer& layer) { return layer.gap; });
  numbers("rounding_gap", [](const MeasuredLayer& layer) { return layer.rounding_gap; });
  return columns;
}

}  // namespace widelimit::propagation
