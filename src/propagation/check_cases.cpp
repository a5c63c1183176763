#include "propagation/check_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "propagation/pair_map.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/propagation/critical.hpp"
#include "widelimit/propagation/loss_predictor.hpp"

namespace widelimit::propagation {

namespace {

constexpr double one_block_gap = 0.01;

numerics::ActivationPtr read_activation(const std::string& name) {
  if (name == "tanh") return numerics::tanh();
  if (name == "erf") return numerics::erf();
  if (name == "relu") return numerics::relu();
  if (name == "linear") return numerics::identity();
  throw DataError(fmt::format("activation: expected tanh, erf, relu or linear, got '{}'", name));
}

TokenState read_state(const JsonValue& inputs) {
  const double q = inputs.at("q_over_d"), p = inputs.at("p_over_d");
  return {q, q - p};
}

/// Numbers of blocks, ascending.
std::vector<Index> read_blocks(const JsonValue& inputs) {
  const JsonValue field = inputs.at("blocks");
  std::vector<Index> blocks = field;
  if (blocks.empty() || blocks.front() < 0 || !std::is_sorted(blocks.begin(), blocks.end()))
    field.fail("expected ascending numbers of blocks, got " + shown_json(field.raw()));
  return blocks;
}

ExponentOptions at_depth(const JsonValue& inputs) {
  ExponentOptions options;
  options.depth = inputs.value("L", 16.0);
  return options;
}

double value_or_none(const std::optional<double>& value) { return value.value_or(std::nan("")); }

CaseFields gaussian_moments(const JsonValue& inputs) {
  const PairMap map(read_activation(inputs.at("activation")), inputs.at("variance"));
  const double gap = inputs.at("one_minus_correlation");
  const double output_gap = map.output_gap(gap);
  CaseFields fields{{"E_phi2", {map.second_moment()}},
                    {"E_dphi2", {map.slope()}},
                    {"E_phi_phi", {map.second_moment() - output_gap}},
                    {"E_phi2_minus_E_phi_phi", {output_gap}},
                    {"E_dphi_dphi", {map.slope(gap)}}};
  if (!(inputs.at("activation") == "relu")) fields["E_ddphi2"] = {map.curvature()};
  return fields;
}

CaseFields attention_core_case(const JsonValue& inputs) {
  const double c = inputs.at("c");
  const TokenState core = attention_core(inputs.at("n"), inputs.at("sigma_A"), 1 - c);
  return {{"q_over_d", {core.q}}, {"p_over_d", {core.p()}}, {"q_minus_p_over_d", {core.gap}}};
}

CaseFields attention_block(const JsonValue& inputs) {
  const TokenState state = BlockMap(read_parameters(inputs)).attention(read_state(inputs));
  return {{"q_over_d", {state.q}}, {"p_over_d", {state.p()}}};
}

CaseFields attention_full_block(const JsonValue& inputs) {
  const AttentionMask mask = inputs.at("causal") ? AttentionMask::causal : AttentionMask::full;
  const BlockMap map(read_parameters(inputs));
  return {{"C_over_d", map.attention(check::square_matrix(inputs.at("C_over_d")), mask)}};
}

CaseFields softmax_moment(const JsonValue& inputs) {
  const Index base = inputs.value("index_base", Index{0});
  const auto index = [&](const char* name) { return inputs.at(name).get<Index>() - base; };
  return {{"value",
           {softmax_second_moment(check::square_matrix(inputs.at("cosines")), inputs.at("sigma_A"),
                                  index("query_i"), index("key_j"), index("query_k"), index("key_l"))}}};
}

CaseFields mlp_stats(const JsonValue& inputs) {
  const MlpStatistics mlp = mlp_statistics(read_parameters(inputs));
  return {{"preactivation_variances", mlp.preactivation_variances}, {"k_out", {mlp.k_out}}, {"f", {mlp.f}}};
}

CaseFields mlp_block(const JsonValue& inputs) {
  const BlockMap map(read_parameters(inputs));
  const TokenState start = read_state(inputs), state = map.mlp(start);
  return {{"q_over_d", {state.q}},
          {"p_over_d", {state.p()}},
          {"f_offdiagonal", {map.mlp_map().slope(start.cosine_gap())}}};
}

CaseFields trajectory(const JsonValue& inputs) {
  const BlockMap map(read_parameters(inputs));
  const std::vector<Index> blocks = read_blocks(inputs);
  const auto states =
      map.trajectory(TokenState::from_cosine(inputs.at("q0_over_d"), inputs.at("c0")), blocks.back());
  CaseFields fields;
  for (const Index block : blocks) {
    const TokenState& state = states.at(static_cast<std::size_t>(block));
    fields["q_over_d"].append(state.q);
    fields["c"].append(state.cosine());
  }
  return fields;
}

CaseFields exponents(const JsonValue& inputs) {
  const Parameters parameters = read_parameters(inputs);
  const CollapsedPoint point = collapsed_point(parameters);
  const BlockMap map(parameters);
  const auto n = static_cast<double>(parameters.tokens);
  const JacobianMoments moments = jacobian_moments(parameters, 64);
  const AttentionMask causal = AttentionMask::causal;
  return {{"q_star_over_d", {point.q_star}},
          {"q_M_over_d", {point.q_M}},
          {"k_out", {point.k_out}},
          {"f", {point.f}},
          {"mu_delta", {point.mu_delta}},
          {"mu_q", {point.mu_q}},
          {"lambda_a", {point.lambda_a()}},
          {"lambda_a_log", {point.lambda_a_log()}},
          {"jacobian_qp", collapsed_jacobian(parameters)},
          {"m", {point.m}},
          {"a0", {point.a0}},
          {"a1", {point.a1}},
          {"x", {moments.x}},
          {"y_at_d64", {moments.y}},
          {"z_at_d64", {moments.z}},
          {"lambda_g_L4", {gradient_exponent(point, n, 4)}},
          {"lambda_g_L16", {gradient_exponent(point, n, 16)}},
          {"lambda_g_L64", {gradient_exponent(point, n, 64)}},
          {"lambda_g_infinite", {infinite_gradient_exponent(point)}},
          {"log_jacobian_norm2_L16_d64", {log_jacobian_norm(point, n, 64, 16)}},
          {"published_formula_lambda_g_L16", {published_gradient_exponent(parameters, 16)}},
          {"one_block_log_c099_q1", {one_block_exponent(map, 1, one_block_gap)}},
          {"one_block_log_c099_qstar", {one_block_exponent(map, point.q_star, one_block_gap)}},
          {"one_block_log_limit_q1", {one_block_exponent_limit(parameters, 1)}},
          {"causal_one_block_log_limit_q1", {one_block_exponent_limit(parameters, 1, causal)}},
          {"causal_lambda_a_asymptotic", {causal_angle_exponent(parameters)}},
          {"causal_lambda_g_L16", {causal_gradient_exponent(parameters, 16)}}};
}

CaseFields simplex(const JsonValue& inputs) {
  const TokenState state = simplex_fixed_point(BlockMap(read_parameters(inputs))).state;
  return {{"q_over_d", {state.q}}, {"c", {state.cosine()}}};
}

CaseFields critical_gain(const JsonValue& inputs) {
  Parameters parameters = read_parameters(inputs);
  const ExponentOptions options = at_depth(inputs);
  const std::optional<double> angle =
      critical_value(Exponent::angle, Coordinate::sigma_w, parameters, options);
  CaseFields fields{
      {"sigma_w_lambda_a_zero", {value_or_none(angle)}},
      {"sigma_w_lambda_g_zero",
       {value_or_none(critical_value(Exponent::gradient, Coordinate::sigma_w, parameters, options))}}};
  if (angle) {
    parameters.sigma_w = *angle;
    fields["critical_kappa_at_lambda_a_zero"] = {critical_curvature(parameters)};
  }
  return fields;
}

CaseFields critical_strength(const JsonValue& inputs) {
  const Parameters parameters = read_parameters(inputs);
  const ExponentOptions options = at_depth(inputs);
  return {{"alpha_M_lambda_a_zero",
           {value_or_none(critical_value(Exponent::angle, Coordinate::alpha_M, parameters, options))}},
          {"alpha_M_lambda_g_zero",
           {value_or_none(critical_value(Exponent::gradient, Coordinate::alpha_M, parameters, options))}}};
}

CaseFields kink(const JsonValue& inputs) {
  Parameters parameters = read_parameters(inputs);
  ExponentOptions options = at_depth(inputs);
  parameters.sigma_w = inputs.at("sigma_w_of_second_slice");
  CaseFields fields;
  for (const bool published : {false, true}) {
    options.formula = published ? Formula::published : Formula::corrected;
    const std::string prefix = published ? "published_formula_" : "";
    const Parameters first = gradient_kink(Coordinate::alpha, parameters, options);
    const Parameters second = gradient_kink(Coordinate::alpha_A, parameters, options);
    fields[prefix + "alpha"] = {first.alpha_A};
    fields[prefix + "sigma_w"] = {first.sigma_w};
    fields[prefix + "alpha_A"] = {second.alpha_A};
    fields[prefix + "alpha_M"] = {second.alpha_M};
  }
  return fields;
}

CaseFields critical_init(const JsonValue& inputs) {
  const auto found = critical_initialisation(read_parameters(inputs), inputs.at("L").get<Index>(),
                                             FreeParameters::strengths_and_gain, inputs.at("tol"));
  return {{"alpha", {found.parameters.alpha_A}}, {"sigma_w", {found.parameters.sigma_w}}};
}

CaseFields small_alpha(const JsonValue& inputs) {
  const double ratio = std::sqrt(inputs.at("alpha_A2_over_alpha_M2").get<double>());
  return {{"sigma_w", {small_strength_gain(Exponent::angle, read_parameters(inputs), ratio)}}};
}

CaseFields two_groups(const JsonValue& inputs) {
  const Parameters parameters = read_parameters(inputs);
  const BlockMap map(parameters);
  const Index half = parameters.tokens / 2;
  Matrix<double> gram =
      Matrix<double>::Constant(parameters.tokens, parameters.tokens, inputs.at("p2_over_d").get<double>());
  gram.topLeftCorner(half, half).setConstant(inputs.at("p1_over_d").get<double>());
  gram.bottomRightCorner(half, half).setConstant(inputs.at("p1_over_d").get<double>());
  gram.diagonal().setConstant(inputs.at("q0_over_d").get<double>());
  CaseFields fields;
  Index done = 0;
  for (const Index blocks : read_blocks(inputs)) {
    for (; done < blocks; ++done) gram = map.block(gram);
    fields["q_over_d"].append(gram(0, 0));
    fields["p1_over_p2"].append(gram(0, 1) / gram(0, half));
  }
  return fields;
}

CaseFields gradient_profile(const JsonValue& inputs) {
  const TokenState start = TokenState::from_cosine(inputs.at("q0_over_d"), inputs.at("c0"));
  return {{"lambda_g",
           {gradient_exponent_from(BlockMap(read_parameters(inputs)), start, inputs.at("L").get<Index>())}}};
}

CaseFields predicted_loss(const JsonValue& inputs) {
  const LossPredictor predictor{inputs.at("w_a"), inputs.at("w_g"), inputs.at("b"), inputs.at("ceiling")};
  return {{"loss", {predictor(inputs.at("lambda_a"), inputs.at("lambda_g"))}}};
}

}  // namespace

Parameters read_parameters(const JsonValue& inputs) {
  Parameters parameters;
  parameters.tokens = inputs.value("n", parameters.tokens);
  parameters.sigma_A = inputs.value("sigma_A", parameters.sigma_A);
  if (inputs.contains("alpha")) parameters.alpha_A = parameters.alpha_M = inputs.at("alpha");
  parameters.alpha_A = inputs.value("alpha_A", parameters.alpha_A);
  parameters.alpha_M = inputs.value("alpha_M", parameters.alpha_M);
  parameters.sigma_w = inputs.value("sigma_w", parameters.sigma_w);
  parameters.mlp_depth = inputs.value("ell", parameters.mlp_depth);
  parameters.activation = read_activation(inputs.value("activation", std::string("tanh")));
  const std::string gain = inputs.value("sigma_out", std::string("unit"));
  if (gain != "unit" && gain != "shared")
    throw DataError(fmt::format("sigma_out: expected unit or shared, got '{}'", gain));
  parameters.sigma_out = gain == "unit" ? OutputGain::unit() : OutputGain::shared();
  return parameters;
}

CaseFields recompute(const std::string& function, const JsonValue& inputs) {
  using Case = std::function<CaseFields(const JsonValue&)>;
  static const std::map<std::string, Case> cases{
      {"gaussian_moments", gaussian_moments},
      {"attention_core", attention_core_case},
      {"attention_block", attention_block},
      {"attention_full_block", attention_full_block},
      {"softmax_second_moment", softmax_moment},
      {"mlp_stats", mlp_stats},
      {"mlp_block", mlp_block},
      {"trajectory", trajectory},
      {"exponents", exponents},
      {"simplex_fixed_point", simplex},
      {"critical_sigma_w", critical_gain},
      {"critical_alpha_M", critical_strength},
      {"kink", kink},
      {"critical_init", critical_init},
      {"small_alpha_sigma_w", small_alpha},
      {"causal_kappa",
       [](const JsonValue& in) {
         return CaseFields{{"value", {causal_gap_share(in.at("n").get<Index>())}}};
       }},
      {"two_group_trajectory", two_groups},
      {"gradient_profile", gradient_profile},
      {"loss_predictor", predicted_loss}};
  return check::function_of(cases, function)(inputs);
}

double grid_value(const std::string& quantity, const Parameters& parameters) {
  const auto n = static_cast<double>(parameters.tokens);
  const CollapsedPoint point = collapsed_point(parameters);
  if (quantity == "lambda_a") return point.lambda_a();
  if (quantity == "lambda_a_log") return point.lambda_a_log();
  if (quantity == "lambda_g_L16") return gradient_exponent(point, n, 16);
  if (quantity == "lambda_g_infinite") return infinite_gradient_exponent(point);
  if (quantity == "published_formula_lambda_g_L16") return published_gradient_exponent(parameters, 16);
  if (quantity == "q_star_over_d") return point.q_star;
  if (quantity == "one_block_log_limit_q1") return one_block_exponent_limit(parameters, 1);
  if (quantity == "causal_lambda_g_L16") return causal_gradient_exponent(parameters, 16);
  throw DataError(fmt::format("grid: the quantity '{}' is not known", quantity));
}

}  // namespace widelimit::propagation
