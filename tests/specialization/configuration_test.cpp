#include "widelimit/specialization/configuration.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "support/read_whole.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

Prior spikes() { return Prior::spikes(2, 10); }

template <typename Read>
auto read_experiment(const char* experiment, const json& config, const Read& read) {
  return widelimit::testing::read_whole(config, experiment_fields(experiment), read);
}

json small_heads(const json& more = json::object()) {
  json config = {{"activation", "softmax1"}, {"tokens", 3}, {"heads", 2}};
  config.update(more);
  return config;
}

TrainingSetup training_of(const json& more = json::object()) {
  return read_experiment("flow", small_heads(more),
                         [](ConfigReader& fields) { return read_training(fields, spikes()); });
}

template <typename Read>
std::string reading_error(const Read& read) {
  return error_message<Error>([&] { return read(), 0; });
}

}  // namespace

TEST_CASE("configuration: flows have the defaults of their rows") {
  const TrainingSetup setup = training_of();
  CHECK(setup.activation == HeadActivation::softmax1);
  CHECK(setup.flow.stepper == FlowStepper::euler);
  CHECK(setup.flow.stop_gradient == TrainingSetup{}.flow.stop_gradient);
  CHECK(setup.samples == TrainingSetup{}.samples);
  CHECK(setup.fresh_samples == TrainingSetup{}.fresh_samples);
  CHECK(setup.starts == 1);
  CHECK(setup.seed == 1);
  CHECK(setup.leave_saddles);
}

TEST_CASE("configuration: a last time that is given has even records, one that is not growing ones") {
  const TrainingSetup given = training_of({{"tau", 20000}, {"step", 1}, {"records", 4}}),
                      left_out = training_of({{"step", 1}, {"records", 4}});
  CHECK(given.flow.steps == left_out.flow.steps);
  CHECK(given.flow.record == std::vector<Index>{0, 5000, 10000, 15000, 20000});
  CHECK(left_out.flow.record == record_growing(4, 20000));
}

TEST_CASE("configuration: steps fill the time of a flow, and come near to that of SGD") {
  CHECK(reading_error([] {
          return training_of({{"tau", 1}, {"step", 0.3}});
        }) == "config.tau: expected whole steps of step 0.3, got 1, which is 3.33333 of them");
  const auto sgd = [](double gamma) {
    return read_experiment("sgd", small_heads({{"dimension", 20}, {"tau", 1}, {"gamma", gamma}}),
                           [](ConfigReader& fields) { return read_sgd(fields, spikes()); });
  };
  CHECK(sgd(0.3).options.steps == 3);
  CHECK(sgd(0.3).options.batch == 20);
  CHECK(reading_error([&] { return sgd(3); }).starts_with("config.tau: expected at least half a step"));
}

TEST_CASE("configuration: a start of one's own") {
  const auto start = [](const json& given) {
    const json config = small_heads({{"start", given}});
    ConfigReader fields(config, experiment_fields("flow"));
    const TrainingSetup setup = read_training(fields, spikes());
    return read_start(fields, setup);
  };
  const json unit = {{1, 0}, {0, 1}};
  CHECK(start({{"m", unit}, {"S", unit}})->r.isIdentity());
  CHECK(start({{"m", unit}, {"r", unit}, {"b", {1, 2}}, {"v", 3}})->v(0) == 3);
  CHECK(reading_error([&] { return start({{"m", unit}}); }) == "config.start: give either S or r");
  CHECK(reading_error([&] {
          return start({{"m", {{1, 2}}}, {"r", unit}});
        }) == "config.start.m: expected 2 x 2 numbers, got 1 x 2");
  const json config = small_heads();
  ConfigReader fields(config, experiment_fields("flow"));
  CHECK_FALSE(read_start(fields, training_of()));
}

TEST_CASE("configuration: times are those of flows or of SGD, told by what each has") {
  const auto timed = [](const json& more) {
    json config = small_heads({{"dimension", 20}, {"etas", {1}}, {"tau", 2}, {"starts", 1}});
    config.update(more);
    ConfigReader fields(config, experiment_fields("phase-transition"));
    TimedSetup setup = read_timed_runs(fields, spikes());
    set_dimension(fields, fields.integer("dimension"), setup);
    return setup;
  };
  CHECK_FALSE(timed(json::object()).batch);
  CHECK(timed(json::object()).runs.samples == TimedFlows{}.samples);
  CHECK(timed({{"dynamics", "sgd"}, {"batch", 5}}).batch == 5);
  CHECK(timed({{"dynamics", "sgd"}}).batch == 0);
  CHECK(reading_error([&] {
          return timed({{"batch", 5}});
        }) == "config.batch: has no effect with flows: leave it out");
  CHECK(reading_error([&] {
          return timed({{"dynamics", "sgd"}, {"step", 0.5}});
        }) == "config.step: has no effect with SGD: leave it out");
  CHECK(reading_error([&] {
          return timed({{"dimension", 3}});
        }) == "config.dimension: expected an integer >= 4, got 3");
  CHECK(timed({{"dynamics", "sgd"}, {"gamma", 1}}).split_times(1, 1).times.size() == 1);
}

TEST_CASE("configuration: pairs of flows, comparisons and images") {
  const FlowPairSetup pair = read_experiment(
      "resampling", small_heads({{"tau", 2}, {"starts", 3}, {"seed", 5}}), [](ConfigReader& in) {
        CHECK(in.integer("starts") == 3);
        CHECK(read_seed(in) == 5);
        return read_flow_pair(in, spikes());
      });
  CHECK(pair.flow.steps == 20);
  const json compared = small_heads({{"dimension", 20}, {"tau", 1}, {"step", 0.5}, {"symmetry", "closed"}});
  const Comparison both = read_experiment("compare", compared, [](ConfigReader& in) {
    CHECK(in.integer("starts") == 1);
    return read_comparison(in, spikes());
  });
  CHECK(both.flow.symmetry == SampleSymmetry::closed);
  CHECK(both.sgd.options.record == std::vector<Index>{0, 25, 50});
  const json digits = {{"tau", 1}, {"gamma", 0.5}};
  ConfigReader images(digits, experiment_fields("digits"));
  CHECK(read_image_sgd(images, 784).batch == 784);
}

TEST_CASE("configuration: single fields, and errors that name them") {
  const json config = {{"prior", {{"kind", "spikes"}, {"features", 2}, {"nu", -1}}},
                       {"activation", "bayes"},
                       {"normaliser", "full_model"}};
  ConfigReader fields(config, experiment_fields("prune"));
  CHECK(read_activation(fields) == HeadActivation::bayes);
  CHECK(read_normaliser(fields) == PruneNormaliser::full_model);
  CHECK(reading_error([&] { return read_prior(fields); }).starts_with("config.prior: "));
  CHECK(reading_error([] { return experiment_fields("fly").size(); }) == "heads: there is no experiment fly");
  const TrainingSetup fresh =
      read_experiment("flow", json{{"tokens", 3}, {"heads", 2}, {"fresh_samples", 7}},
                      [](ConfigReader& in) { return read_fresh_samples(in, spikes()); });
  CHECK(fresh.fresh_samples == 7);
}
