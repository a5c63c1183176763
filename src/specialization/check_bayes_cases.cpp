#include "check_case_parts.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

namespace {

CaseFields bayes_case(const JsonValue& in) {
  const Prior prior = read_prior(in.at("prior"));
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
  const Prior prior = read_prior(in.at("prior"));
  const Matrix<double> X = in.at("X"), k_star = in.at("k_star");
  const Matrix<double> chi_star = X * k_star.transpose(), p = k_star * k_star.transpose();
  const Vector<double> limit = bayes_posterior(prior, chi_star), exact = bayes_posterior(prior, chi_star, p);
  return {{"posterior_limit_norm", limit},
          {"posterior_exact_norm", exact},
          {"prediction_limit_norm", X.transpose() * limit},
          {"prediction_exact_norm", X.transpose() * exact}};
}

CaseFields bayes_risk_case(const JsonValue& in) {
  return {{"bayes_risk", bayes_risk_by_quadrature(read_prior(in.at("prior")), in.at("L"), case_grid(in))}};
}

CaseFields prior_case(const JsonValue& in) {
  const Prior prior = read_prior(in.at("prior"));
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

void add_bayes_cases(CaseTable& table) {
  table["bayes"] = bayes_case;
  table["bayes_finite"] = bayes_finite_case;
  table["bayes_risk"] = bayes_risk_case;
  table["prior_moments"] = prior_case;
  table["linear_variances"] = linear_variances_case;
  table["image_task"] = image_case;
}

}  // namespace widelimit::specialization
