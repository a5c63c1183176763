#include "check_case_parts.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

namespace {

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
          bayes_risk_by_quadrature(Prior::from_json(in.at("prior")), in.integer("L"), case_grid(in)));
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
  const ImageTask task(in.matrix("pixels"), in.value("labels"), in.number("nu"));
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
