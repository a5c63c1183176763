#include "check_cases.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checks.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

using Eigen::Index;
using nlohmann::json;

namespace {

Matrix<double> to_matrix(const json& rows) {
  const json object = {{"matrix", rows}};
  return JsonFields(object, "case").matrix("matrix");
}

HeadActivation activation_of(const JsonFields& in) {
  return head_activation_from_name(in.text("activation"));
}

HeadParameters parameters_of(const JsonFields& in) {
  return {in.matrix("m"), in.matrix("r"), in.vector("b"), in.vector("v")};
}

GridShape grid_of(const JsonFields& in) { return {in.integer("grid_points"), in.number("grid_span")}; }

void add_gradient(CaseFields& out, const HeadParameters& gradient) {
  out.add("grad_m", gradient.m);
  out.add("grad_r", gradient.r);
  out.add("grad_b", gradient.b);
  out.add("grad_v", gradient.v);
}

CaseFields activation_case(const JsonFields& in) {
  const HeadActivation activation = activation_of(in);
  const Matrix<double> chi = in.matrix("chi");
  const Vector<double> b = in.vector("b"), v = in.vector("v");
  const Matrix<double> sigma = head_activation(activation, chi, b, v);
  const ActivationJacobians jacobians = head_activation_jacobians(activation, chi, b, v);
  CaseFields out;
  out.add("sigma", sigma);
  out.add("aggregate", aggregate(sigma));
  out.add("jacobian_chi", jacobians.chi);
  out.add("jacobian_b", jacobians.b);
  out.add("jacobian_v", jacobians.v);
  return out;
}

CaseFields token_loss_case(const JsonFields& in) {
  const TokenLoss loss =
      token_loss(activation_of(in), in.matrix("chi"), in.vector("b"), in.vector("v"), in.integer("eps"));
  CaseFields out;
  out.add("aggregate", loss.aggregate);
  out.add("loss", loss.loss);
  out.add("grad_chi", loss.chi_gradient);
  out.add("grad_b", loss.b_gradient);
  out.add("grad_v", loss.v_gradient);
  return out;
}

CaseFields sampled_loss_case(const JsonFields& in) {
  const SampledLoss loss =
      sampled_loss(activation_of(in), parameters_of(in), SampleSet<double>(sample_values(in)),
                   LossDetail::gradients_and_noise);
  CaseFields out;
  out.add("loss", loss.loss);
  out.add("loss_standard_error", loss.standard_error);
  out.add("noise_matrix", loss.noise);
  add_gradient(out, loss.gradient);
  return out;
}

CaseFields flow_case(const JsonFields& in) {
  FlowOptions options;
  options.step = in.number("step");
  options.record = in.integers("record");
  options.steps = options.record.back();
  options.variant = in.text("variant") == "symmetric" ? FlowVariant::symmetric : FlowVariant::frame;
  options.batch_noise = in.number("batch_noise");
  CaseFields out;
  for (const FlowPoint& point :
       gradient_flow(activation_of(in), parameters_of(in), SampleSet<double>(sample_values(in)), options)) {
    out.add("loss", point.loss);
    out.add("m", point.parameters.m);
    out.add("r", point.parameters.r);
    out.add("S", point.S);
    out.add("b", point.parameters.b);
    out.add("v", point.parameters.v);
  }
  return out;
}

CaseFields population_case(const JsonFields& in) {
  const SampledLoss loss = loss_by_quadrature(activation_of(in), parameters_of(in),
                                              Prior::from_json(in.at("prior")), in.integer("L"), grid_of(in));
  CaseFields out;
  out.add("loss", loss.loss);
  add_gradient(out, loss.gradient);
  return out;
}

CaseFields hessian_case(const JsonFields& in) {
  const HessianConstants c = hessian_constants(activation_of(in), in.integer("L"), in.integer("H"));
  const EscapeRates rates = escape_rates(c, in.integer("H"), in.number("eigenvalue"));
  CaseFields out;
  out.add("c1", c.c1);
  out.add("c2", c.c2);
  out.add("c3", c.c3);
  out.add("c4", c.c4);
  out.add("c5", c.c5);
  out.add("b", c.b);
  out.add("v", c.v);
  out.add("rate_split", rates.split);
  out.add("rate_common", rates.common);
  out.add("initial_pull", c.initial_pull);
  return out;
}

CaseFields saddle_case(const JsonFields& in) {
  const Matrix<double> m = in.matrix("m");
  const HessianConstants constants =
      hessian_constants_at(activation_of(in), in.integer("L"), m.rows(), in.number("common_b"));
  CaseFields out;
  out.add("second_order",
          second_order_form(constants, m, in.matrix("S"), in.vector("b_shift"), in.matrix("cov")));
  return out;
}

CaseFields softmax1_case(const JsonFields& in) {
  const Softmax1Point point =
      softmax1_fixed_point(in.integer("L"), in.integer("H"), in.number("b0"), in.number("v0"));
  CaseFields out;
  out.add("b", point.b);
  out.add("v", point.v);
  return out;
}

CaseFields split_rate_case(const JsonFields& in) {
  CaseFields out;
  out.add("rate",
          split_rate_by_quadrature(activation_of(in), in.integer("L"), in.integer("H"), in.number("nu1"),
                                   in.number("nu2"), in.integer("grid_points"), in.number("grid_span"))
              .rate);
  return out;
}

CaseFields fourth_order_case(const JsonFields& in) {
  const FourthOrder k = fourth_order(in.integer("L"), in.integer("H"), in.number("variance_learned"),
                                     in.number("variance_new"));
  CaseFields out;
  out.add("k1", k.k1);
  out.add("k2", k.k2);
  out.add("k3", k.k3);
  return out;
}

/// Rows of a nested list X[n][l][d] as one matrix.
Matrix<double> token_rows(const json& sequences) {
  json rows = json::array();
  for (const json& sequence : sequences)
    for (const json& token : sequence) rows.push_back(token);
  return to_matrix(rows);
}

CaseFields batch_loss_case(const JsonFields& in) {
  const json& X = in.at("X");
  const BatchLoss loss =
      batch_loss(activation_of(in), {in.matrix("k"), in.vector("b"), in.vector("v")},
                 {static_cast<Index>(X.front().size()), token_rows(X), in.integers("eps")});
  CaseFields out;
  out.add("loss", loss.loss);
  out.add("grad_k", loss.gradient.k);
  out.add("grad_b", loss.gradient.b);
  out.add("grad_v", loss.gradient.v);
  return out;
}

CaseFields sgd_steps_case(const JsonFields& in) {
  HeadVectors heads{in.matrix("k"), in.vector("b"), in.vector("v")};
  const json &X = in.at("batches_X"), &eps = in.at("batches_eps");
  const double gamma = in.number("gamma");
  CaseFields out;
  for (std::size_t t = 0; t < X.size(); ++t) {
    const BatchLoss now = batch_loss(
        activation_of(in), heads,
        {static_cast<Index>(X[t].front().size()), token_rows(X[t]), eps[t].get<std::vector<Index>>()});
    out.add("losses", now.loss);
    heads.k -= gamma * now.gradient.k;
    heads.b -= gamma * now.gradient.b;
    heads.v -= gamma * now.gradient.v;
  }
  const OrderParameters overlaps = order_parameters(heads.k, in.matrix("k_star"));
  out.add("k", heads.k);
  out.add("b", heads.b);
  out.add("v", heads.v);
  out.add("m", overlaps.m);
  out.add("S", overlaps.S);
  return out;
}

CaseFields gram_step_case(const JsonFields& in) {
  GramState state{in.matrix("gram"), in.vector("b"), in.vector("v"), in.integer("D")};
  const json& T = in.at("T");
  const GramBatch batch{static_cast<Index>(T.front().size()), token_rows(in.at("z")), token_rows(T),
                        in.matrix("theta"), in.integers("eps")};
  CaseFields out;
  out.add("loss", gram_step(activation_of(in), state, batch, in.number("gamma")));
  out.add("gram", state.gram);
  out.add("b", state.b);
  out.add("v", state.v);
  return out;
}

CaseFields order_parameter_case(const JsonFields& in) {
  const OrderParameters overlaps = order_parameters(in.matrix("k"), in.matrix("k_star"));
  CaseFields out;
  out.add("m", overlaps.m);
  out.add("q", overlaps.q);
  out.add("p", overlaps.p);
  out.add("S", overlaps.S);
  out.add("r", overlaps.r);
  out.add("m_whitened", overlaps.m_whitened);
  return out;
}

CaseFields geometry_case(const JsonFields& in) {
  const Matrix<double> m = in.matrix("m");
  CaseFields out;
  out.add("cosine", cosine_similarity(m, in.matrix("S")));
  out.add("max_split", max_split(m));
  out.add("feature_split", feature_splits(m));
  return out;
}

CaseFields specialisation_case(const JsonFields& in) {
  const std::vector<double> tau = in.flat("tau");
  std::vector<Matrix<double>> m;
  for (const json& now : in.at("m")) m.push_back(to_matrix(now));
  CaseFields out;
  const double never = -1;
  out.add("tau_split", specialisation_time(tau, m, in.number("delta")).value_or(never));
  for (Index f = 0; f < m.front().cols(); ++f)
    out.add("tau_feature",
            feature_specialisation_time(tau, m, f, in.number("delta_feature")).value_or(never));
  return out;
}

CaseFields prune_case(const JsonFields& in) {
  const auto normaliser =
      in.at("full_normaliser").get<bool>() ? PruneNormaliser::full_model : PruneNormaliser::kept_heads;
  const PruneResult result =
      greedy_prune(activation_of(in), parameters_of(in), SampleSet<double>(sample_values(in)), normaliser);
  CaseFields out;
  for (const double loss : result.losses) out.add("losses", loss);
  for (const Index head : result.removed) out.add("removed", static_cast<double>(head));
  return out;
}

CaseFields attention_case(const JsonFields& in) {
  const json &chi_star = in.at("chi_star"), &xi = in.at("xi");
  CaseFields out;
  for (std::size_t i = 0; i < chi_star.size(); ++i)
    out.add("maps",
            attention_map(activation_of(in), parameters_of(in), to_matrix(chi_star[i]), to_matrix(xi[i])));
  const AttentionMass mass =
      attention_mass(activation_of(in), parameters_of(in), SampleSet<double>(sample_values(in)));
  out.add("relevant_mass", mass.relevant);
  out.add("other_mass", mass.other);
  return out;
}

CaseFields bayes_case(const JsonFields& in) {
  const Prior prior = Prior::from_json(in.at("prior"));
  const Matrix<double> chi_star = in.matrix("chi_star");
  CaseFields out;
  for (const auto& token : chi_star.rowwise()) out.add("token_score", prior.token_score(token.transpose()));
  out.add("posterior", bayes_posterior(prior, chi_star));
  if (prior.kind() == Prior::Kind::gaussian) return out;
  const HeadParameters heads = bayes_optimal_heads(prior, prior.points().rows());
  const Matrix<double> chi = heads.m * chi_star.transpose();
  out.add("heads_m", heads.m);
  out.add("heads_b", heads.b);
  out.add("head_aggregate", aggregate(head_activation(HeadActivation::bayes, chi, heads.b, heads.v)));
  return out;
}

CaseFields bayes_finite_case(const JsonFields& in) {
  const Prior prior = Prior::from_json(in.at("prior"));
  const Matrix<double> X = in.matrix("X"), k_star = in.matrix("k_star");
  const Matrix<double> chi_star = X * k_star.transpose(), p = k_star * k_star.transpose();
  const Vector<double> limit = bayes_posterior(prior, chi_star), exact = bayes_posterior(prior, chi_star, p);
  CaseFields out;
  out.add("posterior_limit_norm", limit);
  out.add("posterior_exact_norm", exact);
  out.add("prediction_limit_norm", X.transpose() * limit);
  out.add("prediction_exact_norm", X.transpose() * exact);
  return out;
}

CaseFields bayes_risk_case(const JsonFields& in) {
  CaseFields out;
  out.add("bayes_risk",
          bayes_risk_by_quadrature(Prior::from_json(in.at("prior")), in.integer("L"), grid_of(in)));
  return out;
}

CaseFields prior_case(const JsonFields& in) {
  const Prior prior = Prior::from_json(in.at("prior"));
  CaseFields out;
  out.add("mean", prior.mean());
  out.add("cov", prior.covariance());
  return out;
}

CaseFields linear_variances_case(const JsonFields& in) {
  CaseFields out;
  out.add("variances", linear_variances(in.integer("F"), in.number("nu1"), in.number("nu2")));
  return out;
}

CaseFields image_case(const JsonFields& in) {
  const ImageTask task(in.matrix("pixels"), in.at("labels").get<std::vector<int>>(), in.number("nu"));
  const Matrix<double> tokens = task.tokens(in.matrix("noise"), in.integer("eps"), in.integer("image"));
  const Matrix<double> k = in.matrix("k");
  const Vector<double> posterior = task.posterior(tokens);
  CaseFields out;
  out.add("images", task.images());
  out.add("tokens", tokens);
  out.add("posterior", posterior);
  out.add("prediction", tokens.transpose() * posterior);
  out.add("class_means", task.class_means());
  out.add("head_class_cosine", task.class_cosines(k));
  out.add("feature_split", feature_splits(k * task.class_means().transpose()));
  return out;
}

using Recompute = CaseFields (*)(const JsonFields&);

const std::map<std::string, Recompute>& functions() {
  static const std::map<std::string, Recompute> table = {{"activation", activation_case},
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
  return table;
}

}  // namespace

const std::vector<double>& CaseFields::at(const std::string& name) const {
  const auto place = values_.find(name);
  if (place == values_.end())
    throw ArgumentError(fmt::format("no value of this name is computed: \"{}\"", name));
  return place->second;
}

SampleValues sample_values(const JsonFields& in) {
  const json& chi_star = in.at("chi_star");
  SampleValues values;
  values.count = static_cast<Index>(chi_star.size());
  values.tokens = static_cast<Index>(chi_star.front().size());
  values.features = static_cast<Index>(chi_star.front().front().size());
  values.noises = static_cast<Index>(in.at("xi").front().front().size());
  values.chi_star = in.flat("chi_star");
  values.xi = in.flat("xi");
  values.eps = in.integers("eps");
  if (in.has("weights")) values.weights = in.flat("weights");
  return values;
}

CaseFields recompute(const std::string& function, const JsonFields& inputs) {
  const auto place = functions().find(function);
  if (place == functions().end()) throw ArgumentError(fmt::format("unknown function \"{}\"", function));
  return place->second(inputs);
}

}  // namespace widelimit::specialization
