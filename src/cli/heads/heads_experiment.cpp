#include "cli/heads/heads_experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/heads/heads_config.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/specialization/bayes.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

ResultTable bayes_experiment(ConfigReader& in, const RunControl& run) {
  const Prior prior = read_prior(in);
  const BayesRisk risk = bayes_risk(prior, in.integer("tokens"), in.integer("samples"), read_seed(in), run);
  ResultTable table;
  table.columns = {"bayes_risk", "standard_error"};
  table.rows = {{risk.risk, risk.standard_error}};
  table.summary = {{"bayes_risk", risk.risk}, {"standard_error", risk.standard_error}};
  if (in.has("heads")) {
    const HeadParameters optimal =
        naming_errors("config.heads", [&] { return bayes_optimal_heads(prior, in.integer("heads")); });
    table.summary["optimal_heads"] = {{"m", matrix_json(optimal.m)}, {"b", to_json(optimal.b)}};
  }
  return table;
}

ResultTable hessian_experiment(ConfigReader& in, const RunControl& run) {
  const HeadActivation activation = read_activation(in);
  const Prior prior = read_prior(in);
  const Index heads = in.integer("heads");
  const HessianConstants c = hessian_constants(activation, in.integer("tokens"), heads);
  ResultTable table;
  table.columns = {"eigenvalue", "rate_split", "rate_common"};
  for (const double computed : prior.covariance_eigenvalues()) {
    const double eigenvalue = std::max(computed, 0.0);
    const EscapeRates rates = escape_rates(c, heads, eigenvalue);
    table.rows.push_back({eigenvalue, heads > 1 ? rates.split : missing_value, rates.common});
  }
  table.summary = {{"c1", c.c1}, {"c2", c.c2}, {"c3", c.c3}, {"c4", c.c4},
                   {"c5", c.c5}, {"b", c.b},   {"v", c.v},   {"initial_pull", c.initial_pull}};
  if (const auto rate = saddle_rate(in, activation, prior, run)) {
    table.summary["saddle_split_rate"] = rate->rate;
    table.summary["saddle_split_rate_standard_error"] = rate->standard_error;
    table.origin.seed = read_seed(in);
  } else if (in.has("seed")) {
    in.fail(
        "seed",
        "has no effect: nothing is drawn except for softmax or bayes, flip2 and two heads or more; leave it "
        "out");
  }
  return table;
}

using Experiment = ResultTable (*)(ConfigReader&, const RunControl&);

constexpr std::array<std::pair<const char*, Experiment>, 12> experiments = {
    {{"flow", flow_experiment},
     {"sgd", sgd_experiment},
     {"compare", compare_experiment},
     {"bayes", bayes_experiment},
     {"hessian", hessian_experiment},
     {"prune", prune_experiment},
     {"attention", attention_experiment},
     {"phase-transition", phase_transition_experiment},
     {"feature-times", feature_times_experiment},
     {"digits", digits_experiment},
     {"digit-times", digit_times_experiment},
     {"resampling", resampling_experiment}}};

}  // namespace

const std::vector<std::string>& experiment_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    list.reserve(experiments.size());
    for (const auto& [name, run] : experiments) list.emplace_back(name);
    return list;
  }();
  return names;
}

ResultTable run_experiment(std::string_view name, const json& config, const RunControl& run) {
  for (const auto& [known, experiment] : experiments) {
    if (name != known) continue;
    ConfigReader in(config, experiment_fields(name));
    ResultTable table = experiment(in, run);
    if (name != "hessian") table.origin.seed = read_seed(in);
    table.origin.command = fmt::format("heads {}", name);
    table.origin.configuration = config;
    return table;
  }
  throw ArgumentError(
      fmt::format("experiment: expected {}, got \"{}\"", fmt::join(experiment_names(), ", "), name));
}

}  // namespace widelimit::cli
