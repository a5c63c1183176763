#include "widelimit/specialization/experiments.hpp"

#include <algorithm>
#include <cmath>

#include "specialization/experiments/shared.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/specialization/bayes.hpp"

namespace widelimit::specialization {

namespace {

Results bayes_experiment(ConfigReader& fields, const results::Control& control) {
  const Prior prior = read_prior(fields);
  const BayesRisk risk =
      bayes_risk(prior, fields.integer("tokens"), fields.integer("samples"), read_seed(fields), control);
  Results results = seeded(fields);
  results.table = Table({"bayes_risk", "standard_error"}, {{risk.risk, risk.standard_error}});
  results.summary = {{"bayes_risk", risk.risk}, {"standard_error", risk.standard_error}};
  if (fields.has("heads")) {
    const HeadParameters optimal =
        naming_errors("config.heads", [&] { return bayes_optimal_heads(prior, fields.integer("heads")); });
    results.summary["optimal_heads"] = {{"m", results::matrix_json(optimal.m)},
                                        {"b", results::vector_json(optimal.b)}};
  }
  return results;
}

Results hessian_experiment(ConfigReader& fields, const results::Control& control) {
  const HeadActivation activation = read_activation(fields);
  const Prior prior = read_prior(fields);
  const Index heads = fields.integer("heads");
  const HessianConstants c = hessian_constants(activation, fields.integer("tokens"), heads);
  Results results;
  results.table = Table({{.name = "eigenvalue"}, {.name = "rate_split"}, {.name = "rate_common"}});
  for (const double computed : prior.covariance_eigenvalues()) {
    const double eigenvalue = std::max(computed, 0.0);
    const EscapeRates rates = escape_rates(c, heads, eigenvalue);
    results.table.add(eigenvalue, heads > 1 ? rates.split : std::nan(""), rates.common);
  }
  results.summary = {{"c1", c.c1}, {"c2", c.c2}, {"c3", c.c3}, {"c4", c.c4},
                     {"c5", c.c5}, {"b", c.b},   {"v", c.v},   {"initial_pull", c.initial_pull}};
  if (const auto rate = split_rate_at_saddle(fields, activation, prior, control)) {
    results.summary["saddle_split_rate"] = rate->rate;
    results.summary["saddle_split_rate_standard_error"] = rate->standard_error;
    results.origin.seed = read_seed(fields);
  } else if (fields.has("seed")) {
    fields.fail(
        "seed",
        "has no effect: nothing is drawn except for softmax or bayes, flip2 and two heads or more; leave it "
        "out");
  }
  return results;
}

}  // namespace

const results::Theory& experiments() {
  const auto row = [](const char* name, const char* sentence, auto run, auto picture,
                      results::ScanPicture scan = {}, void (*tabulate_point)(Results&) = nullptr) {
    return results::Experiment{.name = name,
                               .sentence = sentence,
                               .fields = &experiment_fields(name),
                               .run = run,
                               .picture = picture,
                               .scan_picture = std::move(scan),
                               .tabulate_point = tabulate_point};
  };
  static const results::Theory theory{
      "heads",
      {row("flow", "Gradient flow of the population loss in order parameters", flow_experiment, flow_picture,
           {"", "", "loss", "loss on fresh samples, of the start with the median"}, tabulate_flow),
       row("sgd", "Online SGD at finite dimension", sgd_experiment, sgd_picture),
       row("compare", "Online SGD and the flow from the same start", compare_experiment, compare_picture),
       row("bayes", "Bayes risk of a prior", bayes_experiment, nullptr, {"", "", "bayes_risk", "Bayes risk"}),
       row("hessian", "Hessian constants at the origin and escape rates", hessian_experiment, nullptr),
       row("prune", "Greedy removal of trained heads", prune_experiment, prune_picture,
           {"removed", "heads removed", "loss", "loss on fresh samples, median over the starts"}),
       row("attention", "Where trained heads attend: maps of single sequences, and mean weights",
           attention_experiment, attention_picture),
       row("phase-transition", "Specialisation times over the size of the start", phase_transition_experiment,
           phase_transition_picture,
           {"log_scale", "ln(sqrt(D) / eta)", "specialisation_time",
            "specialisation time, median over the starts"}),
       row("feature-times", "Specialisation times of each feature over the size of the start",
           feature_times_experiment, feature_times_picture),
       row("digits", "SGD on digits: loss against the Bayes risk, and keys of the heads against the classes",
           digits_experiment, keys_picture),
       row("digit-times",
           "Specialisation times of SGD on digits, for each of them, over the size of the start",
           digit_times_experiment, digit_times_picture),
       row("resampling", "A flow on samples that are kept, compared with one on fresh samples at every step",
           resampling_experiment, resampling_picture)}};
  return theory;
}

}  // namespace widelimit::specialization
