// The range of every field of every table of configuration.hpp, at its ends and outside.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/read_whole.hpp"
#include "support/table_ranges.hpp"
#include "widelimit/specialization/configuration.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using nlohmann::json;

namespace {

json base(const json& more) {
  json config = {{"prior", {{"kind", "flip2"}, {"nu1", 2}, {"nu2", 2}}}, {"tokens", 3}};
  config.update(more);
  return config;
}

template <typename Read>
std::string refusal(const char* experiment, const json& config, const Read& read) {
  try {
    static_cast<void>(widelimit::testing::read_whole(config, experiment_fields(experiment), read));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <typename Read>
void check_experiment(const char* experiment, const json& config, const Read& read) {
  CAPTURE(experiment);
  widelimit::testing::check_table_ranges(
      without_fields(experiment_fields(experiment), {"activations", "dimensions", "scan"}), config,
      [&](const json& given) {
        static_cast<void>(widelimit::testing::read_whole(given, experiment_fields(experiment), read));
      });
}

auto read_flow = [](ConfigReader& fields) {
  const TrainingSetup setup = read_training(fields, read_prior(fields));
  return read_start(fields, setup);
};

}  // namespace

TEST_CASE("heads tables: each range is the one that is read, and errors name the field") {
  const json model = base({{"activation", "softmax1"}, {"heads", 2}, {"tau", 1}, {"samples", 20}});
  const auto with = [](json config, const json& more) {
    config.update(more);
    return config;
  };
  check_experiment("flow", model, read_flow);
  check_experiment("prune", model, [](ConfigReader& fields) {
    static_cast<void>(read_normaliser(fields));
    return read_flow(fields);
  });
  check_experiment("attention", model, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("sequences"));
    return read_flow(fields);
  });
  json sgd = with(model, {{"dimension", 20}});
  sgd.erase("samples");
  check_experiment("sgd", sgd, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("starts"));
    return read_sgd(fields, read_prior(fields));
  });
  check_experiment("compare", sgd, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("starts"));
    return read_comparison(fields, read_prior(fields));
  });
  check_experiment("bayes", base(json::object()), [](ConfigReader& fields) {
    static_cast<void>(read_prior(fields));
    if (fields.has("heads")) static_cast<void>(fields.integer("heads"));
    return std::vector<Index>{fields.integer("tokens"), fields.integer("samples"),
                              static_cast<Index>(read_seed(fields))};
  });
  const auto read_times_of = [](ConfigReader& fields) {
    TimedSetup setup = read_timed_runs(fields, read_prior(fields));
    set_dimension(fields, fields.integer("dimension"), setup);
    setup.runs.activation = read_activation(fields);
    static_cast<void>(fields.integer("starts"));
    static_cast<void>(fields.numbers("etas"));
    static_cast<void>(read_seed(fields));
    return setup;
  };
  const json times = with(model, {{"etas", {1}}, {"dimension", 50}});
  check_experiment("phase-transition", times, read_times_of);
  check_experiment("feature-times", times, read_times_of);
  check_experiment("resampling", model, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("starts"));
    static_cast<void>(read_seed(fields));
    return read_flow_pair(fields, read_prior(fields));
  });
}

TEST_CASE("heads tables: compare takes any whole number of its flow's steps") {
  const auto read = [](ConfigReader& fields) { return read_comparison(fields, read_prior(fields)); };
  json config = base({{"activation", "softmax"}, {"heads", 2}, {"dimension", 50}});
  for (const double tau : {0.1, 0.2, 0.3, 1.0, 3.0, 7.0, 12.0, 25.0, 40.1})
    for (const Index records : {1, 7, 100, 100'000}) {
      CAPTURE(tau);
      CAPTURE(records);
      config["tau"] = tau;
      config["records"] = records;
      const Comparison both = widelimit::testing::read_whole(config, experiment_fields("compare"), read);
      std::vector<SgdPoint> points(both.sgd.options.record.size());
      for (std::size_t k = 0; k < points.size(); ++k)
        points[k].tau = static_cast<double>(both.sgd.options.record[k]) * both.sgd.options.gamma;
      CHECK_NOTHROW(static_cast<void>(flow_steps_at(points, both.flow.step)));
      CHECK(points.back().tau == doctest::Approx(tau));
      CHECK(points.size() <= static_cast<std::size_t>(2 * records + 2));
    }
  config.update({{"tau", 1}, {"gamma", 0.03}});
  CHECK(refusal("compare", config, read).starts_with("config.tau: expected a multiple of 0.3, at which SGD"));
  config["tau"] = 3;
  CHECK(refusal("compare", config, read).empty());
  config.update({{"tau", 1}, {"gamma", 0.0123456789}});
  CHECK(refusal("compare", config, read).starts_with("config.step: "));
}

TEST_CASE("heads tables: a start and a prior that are none name their field") {
  const json model = base({{"activation", "softmax1"}, {"heads", 2}, {"tau", 1}});
  const json start = {{"m", {{0, 0}, {0, 0}}}, {"S", {{1, 0}, {0, 1}}}};
  const auto refused = [&](const char* field, const json& value) {
    json config = model;
    config["start"] = start;
    if (field[0] == 'S' || field[0] == 'r') config["start"].erase("S");
    config["start"][field] = value;
    return refusal("flow", config, read_flow);
  };
  const std::vector<json> matrices = {json::parse("[[1, 0], [0.5, 1]]"),
                                      json::parse("[[1, 2], [2, 1]]"),
                                      json::parse("[[1, 0]]"),
                                      json::parse("[[1, 0], [0]]"),
                                      json::parse("[[\"a\", 0], [0, 1]]"),
                                      json::parse("[]"),
                                      json::parse("3"),
                                      json::parse("\"abc\"")};
  for (const json& matrix : matrices) {
    CAPTURE(matrix);
    CHECK(refused("S", matrix).starts_with("config.start.S"));
  }
  for (const json& matrix :
       {json::parse("[[1, 0]]"), json::parse("[[1, 0], [0]]"), json::parse("\"abc\""), json::parse("[]")}) {
    CHECK(refused("r", matrix).starts_with("config.start.r"));
    CHECK(refused("m", matrix).starts_with("config.start.m"));
  }
  for (const json& vector : {json::parse("[0]"), json::parse("[0, 0, 0]"), json::parse("\"abc\""),
                             json::parse("[[0, 0]]"), json::parse("[0, null]")})
    CHECK(refused("b", vector).find("start") != std::string::npos);
  CHECK(refusal(
            "flow",
            [&] {
              json config = model;
              config.update({{"activation", "softmax"}, {"start", start}});
              config["start"]["b"] = {0, 0};
              return config;
            }(),
            read_flow)
            .starts_with("config.start.b: has no effect with the activation softmax"));
  const auto of_prior = [&](const json& prior) {
    json config = model;
    config["prior"] = prior;
    return refusal("flow", config, read_flow);
  };
  for (const json& prior : {json("flip2"), json(3), json::array(), json::object(),
                            json{{"kind", "flip2"}, {"nu1", -1}, {"nu2", 1}},
                            json{{"kind", "flip2"}, {"nu1", std::nan("")}, {"nu2", 1}},
                            json{{"kind", "flip2"}, {"nu1", "1"}, {"nu2", 1}},
                            json{{"kind", "spikes"}, {"features", 0}, {"nu", 1}},
                            json{{"kind", "spikes"}, {"features", 1.5}, {"nu", 1}},
                            json{{"kind", "spikes"}, {"features", 1'000'000'000}, {"nu", 1}},
                            json{{"kind", "gaussian"}, {"variances", {1, -1}}},
                            json{{"kind", "gaussian"}, {"variances", json::array()}},
                            json{{"kind", "gaussian"}, {"features", 1'000'000'000}, {"nu1", 1}, {"nu2", 1}},
                            json{{"kind", "discrete"}, {"points", {{1, 0}, {0}}}, {"probs", {0.5, 0.5}}},
                            json{{"kind", "discrete"}, {"points", {{1, 0}}}, {"probs", {0.5}}},
                            json{{"kind", "discrete"}, {"points", {{1, 0}}}, {"probs", {0.5, 0.5}}}}) {
    CAPTURE(prior);
    CHECK(of_prior(prior).starts_with("config.prior"));
  }
}
