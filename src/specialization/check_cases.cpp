#include "specialization/check_cases.hpp"

#include "specialization/head_parts.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

HeadActivation activation_of(const JsonValue& in) {
  return head_activation_from_name(in.at("activation").get<std::string>());
}

HeadParameters case_parameters(const JsonValue& in) {
  return {in.at("m"), in.at("r"), in.at("b"), in.at("v")};
}

void add_flow_point(CaseFields& out, const FlowPoint& point) {
  out["loss"].append(point.loss);
  out["m"].append(point.parameters.m);
  out["S"].append(point.S);
  out["b"].append(point.parameters.b);
  out["v"].append(point.parameters.v);
}

namespace {

/// Fields grid_points and grid_span.
GridShape case_grid(const JsonValue& in) { return {in.at("grid_points"), in.at("grid_span")}; }

/// chi_star[n][l][f], xi[n][l][h], eps[n] and, where present, weights[n].
SampleValues sample_values(const JsonValue& in) {
  const JsonValue chi_star = in.at("chi_star");
  SampleValues values;
  values.count = static_cast<Index>(chi_star.size());
  values.tokens = static_cast<Index>(chi_star.front().size());
  values.features = static_cast<Index>(chi_star.front().front().size());
  values.noises = static_cast<Index>(in.at("xi").front().front().size());
  values.chi_star = check::flat_numbers(chi_star);
  values.xi = check::flat_numbers(in.at("xi"));
  values.eps = in.at("eps").get<std::vector<Index>>();
  if (in.contains("weights")) values.weights = check::flat_numbers(in.at("weights"));
  return values;
}

/// The loss and its gradient, with what else there is.
CaseFields loss_fields(const SampledLoss& loss, CaseFields others = {}) {
  others.merge(CaseFields{{"loss", loss.loss},
                          {"grad_m", loss.gradient.m},
                          {"grad_r", loss.gradient.r},
                          {"grad_b", loss.gradient.b},
                          {"grad_v", loss.gradient.v}});
  return others;
}

CaseFields activation_case(const JsonValue& in) {
  const HeadActivation activation = activation_of(in);
  const Matrix<double> chi = in.at("chi");
  const Vector<double> b = in.at("b"), v = in.at("v");
  const Matrix<double> sigma = head_activation(activation, chi, b, v);
  const ActivationJacobians jacobians = head_activation_jacobians(activation, chi, b, v);
  return {{"sigma", sigma},
          {"aggregate", aggregate(sigma)},
          {"jacobian_chi", jacobians.chi},
          {"jacobian_b", jacobians.b},
          {"jacobian_v", jacobians.v}};
}

CaseFields token_loss_case(const JsonValue& in) {
  const TokenLoss loss = token_loss(activation_of(in), in.at("chi"), in.at("b"), in.at("v"), in.at("eps"));
  return {{"aggregate", loss.aggregate},
          {"loss", loss.loss},
          {"grad_chi", loss.chi_gradient},
          {"grad_b", loss.b_gradient},
          {"grad_v", loss.v_gradient}};
}

CaseFields sampled_loss_case(const JsonValue& in) {
  const SampledLoss loss =
      sampled_loss(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)),
                   LossDetail::gradients_and_noise);
  return loss_fields(loss, {{"loss_standard_error", loss.standard_error}, {"noise_matrix", loss.noise}});
}

CaseFields flow_case(const JsonValue& in) {
  FlowOptions options;
  options.step = in.at("step");
  options.record = in.at("record").get<std::vector<Index>>();
  options.steps = options.record.empty() ? 0 : options.record.back();
  options.variant = in.at("variant") == "symmetric" ? FlowVariant::symmetric : FlowVariant::frame;
  options.batch_noise = in.at("batch_noise");
  CaseFields out;
  for (const FlowPoint& point :
       gradient_flow(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)), options)) {
    add_flow_point(out, point);
    out["r"].append(point.parameters.r);
  }
  return out;
}

CaseFields population_case(const JsonValue& in) {
  return loss_fields(
      loss_by_quadrature(activation_of(in), case_parameters(in), prior_of(in), in.at("L"), case_grid(in)));
}

CaseFields hessian_case(const JsonValue& in) {
  const HessianConstants c = hessian_constants(activation_of(in), in.at("L"), in.at("H"));
  const EscapeRates rates = escape_rates(c, in.at("H"), in.at("eigenvalue"));
  return {{"c1", c.c1},
          {"c2", c.c2},
          {"c3", c.c3},
          {"c4", c.c4},
          {"c5", c.c5},
          {"b", c.b},
          {"v", c.v},
          {"rate_split", rates.split},
          {"rate_common", rates.common},
          {"initial_pull", c.initial_pull}};
}

CaseFields saddle_case(const JsonValue& in) {
  const Matrix<double> m = in.at("m");
  const HessianConstants constants =
      hessian_constants_at(activation_of(in), in.at("L"), m.rows(), in.at("common_b"));
  return {{"second_order", second_order_form(constants, m, in.at("S"), in.at("b_shift"), in.at("cov"))}};
}

CaseFields softmax1_case(const JsonValue& in) {
  const Softmax1Point point = softmax1_fixed_point(in.at("L"), in.at("H"), in.at("b0"), in.at("v0"));
  return {{"b", point.b}, {"v", point.v}};
}

CaseFields split_rate_case(const JsonValue& in) {
  return {{"rate", split_rate_by_quadrature(activation_of(in), in.at("L"), in.at("H"), in.at("nu1"),
                                            in.at("nu2"), in.at("grid_points"), in.at("grid_span"))
                       .rate}};
}

CaseFields fourth_order_case(const JsonValue& in) {
  const FourthOrder k =
      fourth_order(in.at("L"), in.at("H"), in.at("variance_learned"), in.at("variance_new"));
  return {{"k1", k.k1}, {"k2", k.k2}, {"k3", k.k3}};
}

/// Rows of a nested list X[n][l][d] as one matrix.
Matrix<double> token_rows(const JsonValue& sequences) {
  auto rows = nlohmann::json::array();
  for (const JsonValue& sequence : sequences.list())
    for (const JsonValue& token : sequence.list()) rows.push_back(token.raw());
  return JsonValue(rows, sequences.path());
}

Index tokens_of(const JsonValue& sequences) { return static_cast<Index>(sequences.front().size()); }

CaseFields batch_loss_case(const JsonValue& in) {
  const JsonValue X = in.at("X");
  const BatchLoss loss = batch_loss(activation_of(in), {in.at("k"), in.at("b"), in.at("v")},
                                    {tokens_of(X), token_rows(X), in.at("eps")});
  return {{"loss", loss.loss},
          {"grad_k", loss.gradient.k},
          {"grad_b", loss.gradient.b},
          {"grad_v", loss.gradient.v}};
}

CaseFields sgd_steps_case(const JsonValue& in) {
  HeadVectors heads{in.at("k"), in.at("b"), in.at("v")};
  const JsonValue X = in.at("batches_X"), eps = in.at("batches_eps");
  const double gamma = in.at("gamma");
  check::Numbers losses;
  for (std::size_t t = 0; t < X.size(); ++t) {
    const BatchLoss now =
        batch_loss(activation_of(in), heads, {tokens_of(X.at(t)), token_rows(X.at(t)), eps.at(t)});
    losses.append(now.loss);
    add_scaled(heads, -gamma, now.gradient);
  }
  const OrderParameters overlaps = order_parameters(heads.k, in.at("k_star"));
  return {{"losses", losses}, {"k", heads.k},    {"b", heads.b},
          {"v", heads.v},     {"m", overlaps.m}, {"S", overlaps.S}};
}

CaseFields gram_step_case(const JsonValue& in) {
  GramState state{in.at("gram"), in.at("b"), in.at("v"), in.at("D")};
  const JsonValue T = in.at("T");
  const GramBatch batch{tokens_of(T), token_rows(in.at("z")), token_rows(T), in.at("theta"), in.at("eps")};
  const double loss = gram_step(activation_of(in), state, batch, in.at("gamma"));
  return {{"loss", loss}, {"gram", state.gram}, {"b", state.b}, {"v", state.v}};
}

CaseFields order_parameter_case(const JsonValue& in) {
  const OrderParameters overlaps = order_parameters(in.at("k"), in.at("k_star"));
  return {{"m", overlaps.m}, {"q", overlaps.q}, {"p", overlaps.p},
          {"S", overlaps.S}, {"r", overlaps.r}, {"m_whitened", overlaps.m_whitened}};
}

CaseFields geometry_case(const JsonValue& in) {
  const Matrix<double> m = in.at("m");
  return {{"cosine", cosine_similarity(m, in.at("S"))},
          {"max_split", max_split(m)},
          {"feature_split", feature_splits(m)}};
}

CaseFields specialisation_case(const JsonValue& in) {
  const std::vector<double> tau = check::flat_numbers(in.at("tau"));
  std::vector<Matrix<double>> m;
  for (const JsonValue& now : in.at("m").list()) m.push_back(now);
  const double never = -1;
  CaseFields out{{"tau_split", specialisation_time(tau, m, in.at("delta")).value_or(never)}};
  for (Index f = 0; f < (m.empty() ? 0 : m.front().cols()); ++f)
    out["tau_feature"].append(feature_specialisation_time(tau, m, f, in.at("delta_feature")).value_or(never));
  return out;
}

CaseFields prune_case(const JsonValue& in) {
  const auto normaliser =
      in.at("full_normaliser").get<bool>() ? PruneNormaliser::full_model : PruneNormaliser::kept_heads;
  const PruneResult result =
      greedy_prune(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)), normaliser);
  CaseFields out{{"losses", result.losses}};
  for (const Index head : result.removed) out["removed"].append(static_cast<double>(head));
  return out;
}

CaseFields attention_case(const JsonValue& in) {
  const JsonValue chi_star = in.at("chi_star"), xi = in.at("xi");
  const HeadActivation activation = activation_of(in);
  const HeadParameters parameters = case_parameters(in);
  const AttentionMass mass = attention_mass(activation, parameters, SampleSet<double>(sample_values(in)));
  CaseFields out{{"relevant_mass", mass.relevant}, {"other_mass", mass.other}};
  for (std::size_t i = 0; i < chi_star.size(); ++i)
    out["maps"].append(attention_map(activation, parameters, chi_star.at(i), xi.at(i)));
  return out;
}

CaseFields bayes_case(const JsonValue& in) {
  const Prior prior = prior_of(in);
  const Matrix<double> chi_star = in.at("chi_star");
  CaseFields out{{"posterior", bayes_posterior(prior, chi_star)}};
  for (const auto& token : chi_star.rowwise())
    out["token_score"].append(prior.token_score(token.transpose()));
  if (prior.kind() == Prior::Kind::gaussian) return out;
  const HeadParameters heads = bayes_optimal_heads(prior, prior.points().rows());
  const Matrix<double> chi = heads.m * chi_star.transpose();
  out["heads_m"] = heads.m;
  out["heads_b"] = heads.b;
  out["head_aggregate"] = aggregate(head_activation(HeadActivation::bayes, chi, heads.b, heads.v));
  return out;
}

CaseFields bayes_finite_case(const JsonValue& in) {
  const Prior prior = prior_of(in);
  const Matrix<double> X = in.at("X"), k_star = in.at("k_star");
  const Matrix<double> chi_star = X * k_star.transpose(), p = k_star * k_star.transpose();
  const Vector<double> limit = bayes_posterior(prior, chi_star), exact = bayes_posterior(prior, chi_star, p);
  return {{"posterior_limit_norm", limit},
          {"posterior_exact_norm", exact},
          {"prediction_limit_norm", X.transpose() * limit},
          {"prediction_exact_norm", X.transpose() * exact}};
}

CaseFields bayes_risk_case(const JsonValue& in) {
  return {{"bayes_risk", bayes_risk_by_quadrature(prior_of(in), in.at("L"), case_grid(in))}};
}

CaseFields prior_case(const JsonValue& in) {
  const Prior prior = prior_of(in);
  return {{"mean", prior.mean()}, {"cov", prior.covariance()}};
}

CaseFields linear_variances_case(const JsonValue& in) {
  return {{"variances", linear_variances(in.at("F"), in.at("nu1"), in.at("nu2"))}};
}

CaseFields image_case(const JsonValue& in) {
  const ImageTask task(in.at("pixels"), in.at("labels"), in.at("nu"));
  const Matrix<double> tokens = task.tokens(in.at("noise"), in.at("eps"), in.at("image"));
  const Matrix<double> k = in.at("k");
  const Vector<double> posterior = task.posterior(tokens);
  return {{"images", task.images()},
          {"tokens", tokens},
          {"posterior", posterior},
          {"prediction", tokens.transpose() * posterior},
          {"class_means", task.class_means()},
          {"head_class_cosine", task.class_cosines(k)},
          {"feature_split", feature_splits(k * task.class_means().transpose())}};
}

}  // namespace

CaseFields recompute(const std::string& function, const JsonValue& inputs) {
  using Case = CaseFields (*)(const JsonValue&);
  static const std::map<std::string, Case> cases{{"activation", activation_case},
                                                 {"token_loss", token_loss_case},
                                                 {"sampled_loss", sampled_loss_case},
                                                 {"gradient_flow", flow_case},
                                                 {"population_loss", population_case},
                                                 {"hessian", hessian_case},
                                                 {"saddle_form", saddle_case},
                                                 {"softmax1_fixed_point", softmax1_case},
                                                 {"split_rate", split_rate_case},
                                                 {"fourth_order", fourth_order_case},
                                                 {"batch_loss", batch_loss_case},
                                                 {"sgd_steps", sgd_steps_case},
                                                 {"gram_step", gram_step_case},
                                                 {"order_parameters", order_parameter_case},
                                                 {"head_geometry", geometry_case},
                                                 {"specialisation_time", specialisation_case},
                                                 {"prune", prune_case},
                                                 {"attention_map", attention_case},
                                                 {"bayes", bayes_case},
                                                 {"bayes_finite", bayes_finite_case},
                                                 {"bayes_risk", bayes_risk_case},
                                                 {"prior_moments", prior_case},
                                                 {"linear_variances", linear_variances_case},
                                                 {"image_task", image_case}};
  return check::function_of(cases, function)(inputs);
}

}  // namespace widelimit::specialization
