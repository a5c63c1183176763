#include "check_case_parts.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

namespace {

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
  for (const JsonValue& now : in.value("m").list()) m.push_back(case_matrix(now));
  CaseFields out;
  const double never = -1;
  out.add("tau_split", specialisation_time(tau, m, in.number("delta")).value_or(never));
  for (Index f = 0; f < (m.empty() ? 0 : m.front().cols()); ++f)
    out.add("tau_feature",
            feature_specialisation_time(tau, m, f, in.number("delta_feature")).value_or(never));
  return out;
}

CaseFields prune_case(const JsonFields& in) {
  const auto normaliser =
      in.value("full_normaliser").get<bool>() ? PruneNormaliser::full_model : PruneNormaliser::kept_heads;
  const PruneResult result =
      greedy_prune(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)), normaliser);
  CaseFields out;
  for (const double loss : result.losses) out.add("losses", loss);
  for (const Index head : result.removed) out.add("removed", static_cast<double>(head));
  return out;
}

CaseFields attention_case(const JsonFields& in) {
  const JsonValue chi_star = in.value("chi_star"), xi = in.value("xi");
  CaseFields out;
  for (std::size_t i = 0; i < chi_star.size(); ++i)
    out.add("maps", attention_map(activation_of(in), case_parameters(in), case_matrix(chi_star.at(i)),
                                  case_matrix(xi.at(i))));
  const AttentionMass mass =
      attention_mass(activation_of(in), case_parameters(in), SampleSet<double>(sample_values(in)));
  out.add("relevant_mass", mass.relevant);
  out.add("other_mass", mass.other);
  return out;
}

}  // namespace

void add_trained_heads_cases(CaseTable& table) {
  table["head_geometry"] = geometry_case;
  table["specialisation_time"] = specialisation_case;
  table["prune"] = prune_case;
  table["attention_map"] = attention_case;
}

}  // namespace widelimit::specialization
