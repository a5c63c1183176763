#include "widelimit/covariance_sde/experiments.hpp"

#include "covariance_sde/experiments/shared.hpp"

namespace widelimit::covariance_sde {

namespace {

/// What --help says after the fields: a range that no single field has, and an example.
std::string help_with(const std::string& example, const std::string& range = "") {
  return range + "\nExample:\n  " + example;
}

constexpr const char* paths_example =
    R"({"model": "transformer", "gamma_squared": 0.125, "width": 200, "depth": 150})";
constexpr const char* networks_example =
    R"({"network": "shaped_transformer", "gamma_squared": 0.125, "heads": 4, "width": 200, "depth": 150})";
constexpr const char* law_range =
    "\nWithin reach, to 1e-8: linear_noise T up to 1e9, in seconds, and up to 600 where slopes differ "
    "by less than half; slopes up to 100 apart at all times, farther apart where linear_noise T is "
    "below .003 or above 1; gamma_squared from 1e-4 on, and smaller ones at times by which almost no "
    "gap explodes. A time out of reach is null in law.json with a warning; none within reach is an "
    "error.\n";

/// The fields of `output` are a network's where the configuration names one.
const ConfigFields& output_fields(const nlohmann::json& config) {
  const FieldReader fields(config, "config");
  if (!fields.has("network") && !fields.has("model"))
    fields.fail("network", "expected this field, or model, got none");
  return command_fields(fields.has("network") ? "output of networks" : "output");
}

using RunExperiment = Results (*)(ConfigReader&, const Control&);
using Names = std::vector<std::string>;

results::Experiment row(const char* name, const char* sentence, RunExperiment run, Names files,
                        Names pictures, const std::string& help) {
  return {.name = name,
          .sentence = sentence,
          .fields = &command_fields(name),
          .run = run,
          .help = help,
          .files = std::move(files),
          .pictures = std::move(pictures)};
}

/// One whose folder has the tables of ensembles.
results::Experiment ensemble_row(const char* name, const char* sentence, RunExperiment run,
                                 const std::string& help) {
  results::Experiment experiment = row(
      name, sentence, run, {"quantiles.csv", "means.csv", "correlations.csv", "samples.csv", "summary.json"},
      {"densities.png", "correlations.png"}, help);
  experiment.trajectories = "Also trajectories.csv: every path at all of times or layers, not the last alone";
  return experiment;
}

}  // namespace

const results::Theory& experiments() {
  static const results::Theory theory = [] {
    results::Theory sde{
        "sde",
        {ensemble_row("simulate", "Paths of the covariance SDE", simulate_experiment,
                      help_with(paths_example)),
         ensemble_row("network", "Covariances of random finite networks", network_experiment,
                      help_with(networks_example)),
         row("compare", "A shaped network against its limiting SDE, by Kolmogorov-Smirnov distances",
             compare_experiment, {"compare.json", "correlations.csv"},
             {"compare.png", "correlations.png", "quantiles.png"}, help_with(networks_example)),
         row("stopping-time",
             "When the eigenvalues of networks leave [1e-4, 1e4], over residual weights and temperatures",
             stopping_experiment, {"stopping_times.json"}, {"stopping_times.png"},
             help_with(
                 R"({"network": "shaped_attention", "gammas": [0.1, 0.3, 0.5], "temperatures": [1, 4], )"
                 R"("width": 200, "depth": 200, "tokens": 4, "variance": 100, "samples": 200})")),
         row("output", "Outputs of networks, or of the SDE, and their kurtosis", output_experiment,
             {"outputs.csv", "output.json"}, {"output.png"}, help_with(paths_example)),
         row("entropy", "Entropy of the softmax rows of networks against depth", entropy_experiment,
             {"entropy.csv"}, {"entropy.png"}, help_with(networks_example)),
         row("explosion",
             "Probability that paths of the SDE explode, with its confidence interval; of more than two "
             "tokens, "
             "and of two or more under a causal mask, an upper bound",
             explosion_experiment, {"explosion.json"}, {"explosion.png"}, help_with(paths_example)),
         row("law", "Exact laws of two tokens: the correlation without attention, the gap under it",
             law_experiment, {"law.csv", "law.json"}, {"law.png"},
             help_with(
                 R"({"model": "attention", "gamma_squared": 0.125, "rho0": 0.2, "times": [0.25, 0.75]})",
                 law_range)),
         row("flow", "The deterministic limits: the flow of the drift, and gamma = 1 / sqrt(depth)",
             flow_experiment, {"flow.csv"}, {"flow.png"},
             help_with(R"({"flow": "commuting", "rho0": 0.2, "times": [0.25, 0.5, 1]})")),
         row("coefficients", "The coefficients of the SDE at a V: softmax moments, drift and diffusion",
             coefficients_experiment, {"coefficients.json", "coefficients.csv"}, {},
             help_with(R"({"model": "transformer", "gamma_squared": 0.125, )"
                       R"("V0": [[1.2, 0.3, -0.1], [0.3, 0.9, 0.25], [-0.1, 0.25, 1.5]]})")),
         row("gradients", "Gradient norms of networks against depth, shaped compared with Pre-LN and Post-LN",
             gradients_experiment, {"gradients.csv", "gradients.json"}, {"gradients.png"},
             help_with(
                 R"({"width": 64, "depth": 24, "networks": [{"network": "shaped_transformer", )"
                 R"("gamma_squared": 0.1}, {"network": "unshaped_pre_ln", "gamma": 1, "lambda": 1}, )"
                 R"({"network": "unshaped_post_ln", "gamma": 1, "lambda": 1}, {"label": "Post-LN, causal", )"
                 R"("network": "unshaped_post_ln", "gamma": 1, "lambda": 1, "mask": "causal"}]})"))}};
    for (results::Experiment& experiment : sde.experiments)
      if (experiment.name == "output") experiment.fields_of = output_fields;
    return sde;
  }();
  return theory;
}

}  // namespace widelimit::covariance_sde
