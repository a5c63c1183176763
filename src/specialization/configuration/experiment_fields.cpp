#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "specialization/configuration/shared_fields.hpp"
#include "widelimit/error.hpp"

namespace widelimit::specialization {

namespace {

using Fields = ConfigFields;

using V = FieldValues;

constexpr const char* required = "";
// More than anyone waits for; products of two such counts stay within an index.
constexpr Index most_drawn = 1'000'000'000;

/// `fewest` tokens.
Fields task_fields(Index fewest = 1, const char* seed_meaning = "of samples, starts and batches") {
  return {{"prior",
           R"({"kind": "flip2", "nu1", "nu2"}, {"kind": "spikes", "features", "nu"}, {"kind": "gaussian", )"
           R"("variances"} (or "nu1", "nu2", "features") or {"kind": "discrete", "points", "probs"})",
           required, "distribution of the signal; nu and variances are squared lengths >= 0"},
          {"tokens", V::integer(fewest, 10'000), required, "L, tokens of a sequence"},
          {"seed", V::integer_at_least(0), "1", seed_meaning}};
}

Fields model_fields(const FieldValues& heads = V::integer(1, 1'000)) {
  return {{"activation", V::words(head_activations), required, "how scores become weights"},
          {"heads", heads, required, "H"}};
}

FieldValues several_heads() {
  return V::integer(2, 1'000).said("integer from 2 to 1000, as a single head has no other to differ from");
}

ConfigField samples_field(const std::string& default_value) {
  return {"samples", V::integer(1, most_drawn), default_value,
          "training set, drawn once and kept for the whole flow"};
}

ConfigField symmetry_field(const char* default_value) {
  return {"symmetry", V::words(sample_symmetries), default_value,
          "closed: the samples are completed under cyclic shifts of the heads and signs of features, so that "
          "they do not pull heads apart"};
}

ConfigField step_field() { return {"step", V::above(0), shown(BesideOptions{}.step), "of the flow, in tau"}; }

ConfigField eta_field() {
  return {"eta", V::within(0, 1e6), shown(TrainingSetup{}.eta), "length of a head at the random start"};
}

Fields flow_fields(const char* starts) {
  return {
      {"stop_gradient", V::at_least(0), shown(TrainingSetup{}.flow.stop_gradient),
       "the flow ends once every entry of its gradient is below; 0: never"},
      {"tau", V::at_least(0), "20000, recorded at growing times",
       "time at which a flow that has not ended is given up"},
      {"starts", V::integer(1, 100'000), starts,
       "flows, each from a start and samples of its own (seed, seed + 1, ...); medians and ranges are over "
       "them"},
      step_field(),
      samples_field(shown(TrainingSetup{}.samples)),
      {"fresh_samples", V::integer(2, most_drawn), shown(TrainingSetup{}.fresh_samples),
       "samples on which trained heads are judged"},
      eta_field(),
      {"start", R"({"m": H x F, "S" or "r": H x H, "b", "v"})", "random",
       "a start of your own; b (softmax1, bayes) and v (softmax1, softmaxv) have defaults"},
      {"records", V::integer(1, 10'000'000), "200",
       "rows of a flow: at even times up to a given tau, at growing ones without it"},
      {"stepper", V::words(flow_steppers), "euler",
       "integrator; the latter two look at stop_gradient at recorded times only"},
      {"variant", V::words(flow_variants), "frame",
       "frame: as SGD has it; symmetric: the symmetrised gradient that the paper prints"},
      symmetry_field("plain"),
      {"leave_saddles", V::boolean(), shown(TrainingSetup{}.leave_saddles),
       "a flow that rests at a saddle is moved along its descending direction and continues; false: it ends "
       "there"},
      {"batch_noise", V::within(0, 1e3), "0", "gamma D / N_b of an SGD whose noise enters S; euler only"}};
}

Fields sgd_fields() {
  return {{"dimension", V::integer(1, most_drawn), required, "D; the gram form needs at least H + F + L"},
          {"tau", V::at_least(0), required, "last time gamma t"},
          {"batch", V::integer(1, most_drawn), "dimension", "N_b, fresh sequences a step"},
          {"gamma", V::above(0), shown(SgdOptions{}.gamma), "learning rate"},
          eta_field(),
          {"records", V::integer(1, 10'000'000), "100", "rows, at even times"},
          {"form", V::words(sgd_forms), "gram",
           "gram: the same process in distribution without vectors of length D"},
          {"planted_m", "H x F", "random", "overlaps at the start"},
          {"starts", V::integer(1, 100'000), "1",
           "runs, each from a start and batches of its own (seed, seed + 1, ...); ranges are over them"}};
}

Fields dimension_field() {
  return {
      {"dimension", V::integer(1, most_drawn).said("integer >= H + F"), required, "D of the random starts"}};
}

/// `what`: flows, or runs of either dynamics.
Fields transition_fields(
    const std::string& delta,
    const char* what = "flows for each of etas (seed, seed + 1, ...); ranges are over them",
    const char* last = "last time of a flow") {
  return {{"etas", V::within(1e-30, 1e6).different_list(), required, "lengths of the heads at the start"},
          {"tau", V::at_least(0), required, last},
          {"starts", V::integer(1, 100'000), "2", what},
          {"stop_gradient", V::at_least(0), "0",
           "a flow ends, not specialised, once every entry of its gradient is below; 0: never, because the "
           "saddle at which heads wait has a small gradient too"},
          {"delta", V::at_least(0), delta,
           "distance of two heads, or of one feature's overlaps from their mean, that counts as specialised"},
          step_field(),
          samples_field(shown(TimedFlows{}.samples)),
          symmetry_field("closed")};
}

Fields phase_transition_fields() {
  return joined_fields(
      {{{"dimension", V::integer(1, most_drawn).said("integer >= H + F"), "dimensions",
         "D of the random starts; of SGD at least H + F + L"},
        {"dimensions", V::integer(1, most_drawn).different_list(), "dimension",
         "several, each >= H + F, in place of dimension: a first column tells them apart"},
        {"dynamics", V::words({"flow", "sgd"}), "flow",
         "sgd: online SGD in Gram form at finite D, with gamma and batch in place of step, samples, symmetry "
         "and stop_gradient"},
        {"gamma", V::above(0), shown(SgdOptions{}.gamma), "learning rate of sgd"},
        {"batch", V::integer(1, most_drawn), "dimension", "N_b of sgd, fresh sequences a step"}},
       transition_fields(shown(TimedFlows{}.delta),
                         "runs for each of dimensions and etas (seed, seed + 1, ...); means, variances and "
                         "ranges are over them",
                         "last time of a run")});
}

/// What runs on pictures are told, `rest` included.
Fields picture_fields(const Fields& rest) {
  Fields fields = {{"activation", V::words(head_activations), required, "how scores become weights"},
                   {"mnist", "text", "none",
                    "folder with the t10k files of MNIST; without it, generated bars take the digits' place"},
                   {"images", V::integer(10, 10'000), "10000", "how many images to take"},
                   {"amplitude", V::at_least(0), "0.3", "nu, which multiplies the centred image"},
                   {"heads", V::integer(1, 1'000), "10", "H"},
                   {"tokens", V::integer(1, 10'000), "5", "L, tokens of a sequence"}};
  fields.insert(fields.end(), rest.begin(), rest.end());
  return joined_fields(
      {fields,
       {{"gamma", V::above(0), "0.25", "learning rate"},
        {"batch", V::integer(1, most_drawn), "pixels of an image", "N_b, fresh sequences a step"},
        {"seed", V::integer_at_least(0), "1", "of starts and batches"}}});
}

Fields digit_fields() {
  return picture_fields(
      {{"eta", V::within(0, 1e6), "1", "length of a head at the random start"},
       {"tau", V::at_least(0), required, "last time gamma t"},
       {"fresh_samples", V::integer(2, most_drawn), "20000", "sequences on which the heads are judged"},
       {"risk_samples", V::integer(2, most_drawn), "1000", "sequences of the estimate of the Bayes risk"}});
}

Fields digit_times_fields() {
  return picture_fields(
      {{"etas", V::within(1e-30, 1e6).different_list(), required, "lengths of the heads at the start"},
       {"tau", V::at_least(0), required, "time gamma t at which a run is given up"},
       {"starts", V::integer(1, 100'000), "2",
        "runs for each of etas (seed, seed + 1, ...); ranges are over them"},
       {"delta", V::at_least(0), "1",
        "length of a class' overlaps minus their mean over the heads that counts as specialised"}});
}

Fields resampling_fields() {
  return {{"tau", V::at_least(0), "40", "last time of a flow that has not ended before"},
          step_field(),
          {"samples", V::integer(1, most_drawn), shown(TrainingSetup{}.samples),
           "of the set that is kept, and of each that is drawn"},
          symmetry_field("plain"),
          eta_field(),
          {"records", V::integer(1, 10'000'000), "100", "rows, at even times"},
          {"stop_gradient", V::at_least(0), "0.0001",
           "both flows end once every entry of the gradient on the kept samples is below; 0: never"},
          {"starts", V::integer(1, 100'000), "1",
           "pairs of flows, each from a start and samples of its own (seed, seed + 1, ...); ranges are over "
           "them"}};
}

using FieldMap = std::map<std::string, Fields, std::less<>>;

FieldMap all_fields() {
  const Fields task = task_fields(), model = model_fields(), several = model_fields(several_heads());
  const Fields normaliser = {{"normaliser", V::words(prune_normalisers), "kept_heads",
                              "whether weights are normalised (bayes) or averaged (others) over the heads "
                              "that are left or over all"}};
  const Fields activations = {
      {"activations", V::words(head_activations).different_list().said("list of different activations"),
       "activation", "several, in place of activation, side by side"}};
  const Fields risk = {
      {"samples", V::integer(2, most_drawn), "1000000", "draws of the estimate"},
      {"heads", V::integer(1, 1'000), "none",
       "H of the Bayes-optimal heads in the summary: of a discrete prior, at least its points"}};
  const Fields sequences = {{"sequences", V::integer(1, most_drawn), "6",
                             "how many of the fresh samples have their maps in the table"}};
  const Fields scan = {
      {"scan", R"({"FIELD": list of numbers, ...})", "none",
       "the experiment at every point of a grid of its fields, such as heads, tokens or prior.nu: "
       "one table, whose first columns are these"}};
  return {
      {"flow", joined_fields({task, model, flow_fields("1"), scan})},
      {"prune", joined_fields({task, model, flow_fields("5"), normaliser, scan})},
      {"attention", joined_fields({task, model, flow_fields("5"), sequences})},
      {"sgd", joined_fields({task, model, sgd_fields()})},
      {"compare", joined_fields({task,
                                 model,
                                 sgd_fields(),
                                 {step_field(), samples_field(shown(BesideOptions{}.samples)),
                                  symmetry_field("plain")}})},
      {"bayes", joined_fields({task, risk, scan})},
      {"hessian",
       joined_fields(
           {task_fields(2, "of the samples for saddle_split_rate; an error where there is none"), model})},
      {"phase-transition", joined_fields({task, several, activations, phase_transition_fields(), scan})},
      {"feature-times", joined_fields({task, several, dimension_field(), transition_fields("1")})},
      {"digits", digit_fields()},
      {"digit-times", digit_times_fields()},
      {"resampling", joined_fields({task, model, resampling_fields()})}};
}

}  // namespace

const ConfigFields& experiment_fields(std::string_view experiment) {
  static const FieldMap fields = all_fields();
  const auto place = fields.find(experiment);
  if (place != fields.end()) return place->second;
  throw ArgumentError(fmt::format("heads: there is no experiment {}", experiment));
}

}  // namespace widelimit::specialization
