#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/heads_config.hpp"

namespace widelimit::cli {

namespace {

using Fields = ConfigFields;

constexpr const char* kRequired = "";

Fields task_fields() {
  return {{"prior",
           R"({"kind": "flip2", "nu1", "nu2"}, {"kind": "spikes", "features", "nu"}, {"kind": "gaussian", )"
           R"("variances"} (or "nu1", "nu2", "features") or {"kind": "discrete", "points", "probs"})",
           kRequired, "distribution of the signal; nu and variances are squared lengths >= 0"},
          {"tokens", "integer >= 1", kRequired, "L, tokens of a sequence"},
          {"seed", "integer >= 0", "1", "of samples, starts and batches"}};
}

Fields model_fields() {
  return {{"activation", "softmax, softmaxv, softmax1 or bayes", kRequired, "how scores become weights"},
          {"heads", "integer >= 1", kRequired, "H"}};
}

ConfigField samples_field(const char* otherwise) {
  return {"samples", "integer >= 1", otherwise, "training set, drawn once and kept for the whole flow"};
}

ConfigField symmetry_field(const char* otherwise) {
  return {"symmetry", "plain or closed", otherwise,
          "closed: the samples are completed under cyclic shifts of the heads and signs of features, so that "
          "they do not pull heads apart"};
}

ConfigField step_field() { return {"step", "number > 0", "0.1", "of the flow, in tau"}; }

ConfigField eta_field() { return {"eta", "number >= 0", "1", "length of a head at the random start"}; }

Fields flow_fields(const char* starts) {
  return {
      {"stop_gradient", "number >= 0", "0.0001",
       "the flow ends once every entry of its gradient is below; 0: never"},
      {"tau", "number >= 0", "20000", "time at which a flow that has not ended is given up"},
      {"starts", "integer >= 1", starts,
       "flows, each from a start and samples of its own (seed, seed + 1, ...); medians and ranges are over "
       "them"},
      step_field(),
      samples_field("100000"),
      {"fresh_samples", "integer >= 1", "200000", "samples on which trained heads are judged"},
      eta_field(),
      {"start", R"({"m": H x F, "S" or "r": H x H, "b", "v"})", "random",
       "a start of your own; b and v have defaults"},
      {"records", "integer >= 1", "200",
       "rows of a flow: at even times up to a given tau, at growing ones without it"},
      {"stepper", "euler, runge_kutta4 or dormand_prince", "euler",
       "integrator; the latter two look at stop_gradient at recorded times only"},
      {"variant", "frame or symmetric", "frame",
       "frame: as SGD has it; symmetric: the symmetrised gradient that the paper prints"},
      symmetry_field("plain"),
      {"batch_noise", "number >= 0", "0", "gamma D / N_b of an SGD whose noise enters S; euler only"}};
}

Fields sgd_fields() {
  return {{"dimension", "integer >= 1", kRequired, "D; the gram form needs at least H + F + L"},
          {"tau", "number >= 0", kRequired, "last time gamma t"},
          {"batch", "integer >= 1", "dimension", "N_b, fresh sequences a step"},
          {"gamma", "number > 0", "0.02", "learning rate"},
          eta_field(),
          {"records", "integer >= 1", "100", "rows, at even times"},
          {"form", "gram or vector", "gram",
           "gram: the same process in distribution without vectors of length D"},
          {"planted_m", "H x F", "random", "overlaps at the start"},
          {"starts", "integer >= 1", "1",
           "runs, each from a start and batches of its own (seed, seed + 1, ...); ranges are over them"}};
}

Fields transition_fields(const char* delta) {
  return {
      {"dimension", "integer >= H + F", kRequired, "D of the random starts"},
      {"etas", "list of numbers > 0", kRequired, "lengths of the heads at the start"},
      {"tau", "number >= 0", kRequired, "last time of a flow"},
      {"starts", "integer >= 1", "2", "flows for each of etas (seed, seed + 1, ...); ranges are over them"},
      {"delta", "number >= 0", delta,
       "distance of two heads, or of one feature's overlaps from their mean, that counts as specialised"},
      step_field(),
      samples_field("20000"),
      symmetry_field("closed")};
}

using FieldMap = std::map<std::string, Fields, std::less<>>;

FieldMap all_fields() {
  const Fields task = task_fields(), model = model_fields();
  const Fields normaliser = {
      {"normaliser", "kept_heads or full_model", "kept_heads",
       "whether bayes weights are normalised over the heads that are left or over all"}};
  const Fields activations = {
      {"activations", "list of activations", "activation", "several, in place of activation, side by side"}};
  const Fields risk = {{"samples", "integer >= 1", "1000000", "draws of the estimate"}};
  return {
      {"flow", joined_fields({task, model, flow_fields("1")})},
      {"prune", joined_fields({task, model, flow_fields("5"), normaliser})},
      {"sgd", joined_fields({task, model, sgd_fields()})},
      {"compare",
       joined_fields(
           {task, model, sgd_fields(), {step_field(), samples_field("100000"), symmetry_field("plain")}})},
      {"bayes", joined_fields({task, risk})},
      {"hessian", joined_fields({task, model})},
      {"phase-transition", joined_fields({task, model, activations, transition_fields("0.2")})},
      {"feature-times", joined_fields({task, model, transition_fields("1")})}};
}

}  // namespace

const ConfigFields& experiment_fields(std::string_view experiment) {
  static const FieldMap fields = all_fields();
  const auto place = fields.find(experiment);
  if (place != fields.end()) return place->second;
  throw ArgumentError(
      fmt::format("experiment: expected {}, got \"{}\"", fmt::join(experiment_names(), ", "), experiment));
}

void allow_fields_of(std::string_view experiment, const nlohmann::json& config) {
  const FieldReader fields(config, "config");
  std::vector<std::string_view> known;
  for (const ConfigField& field : experiment_fields(experiment)) known.emplace_back(field.name);
  for (const auto& [name, value] : config.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      fields.fail(name, fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
}

}  // namespace widelimit::cli
