#include "check_case_parts.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

namespace {

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

}  // namespace

void add_trained_heads_cases(CaseTable& table) {
  table["head_geometry"] = geometry_case;
  table["specialisation_time"] = specialisation_case;
  table["prune"] = prune_case;
  table["attention_map"] = attention_case;
}

}  // namespace widelimit::specialization
