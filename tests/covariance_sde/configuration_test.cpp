#include "widelimit/covariance_sde/configuration.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/error_message.hpp"
#include "support/read_whole.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using nlohmann::json;
using widelimit::testing::error_message;

namespace {

template <typename Read>
auto read_by(const char* command, const json& config, const Read& read) {
  return widelimit::testing::read_whole(config, command_fields(command), read);
}

SdeSetup simulation_of(const json& config) { return read_by("simulate", config, read_sde_setup); }

NetworkSetup networks_of(const json& config) { return read_by("network", config, read_network_setup); }

/// The message of reading a configuration.
template <typename Read>
std::string refused(const Read& read) {
  return error_message<Error>([&] { return read(), 0; });
}

}  // namespace

TEST_CASE("configuration: what is not given has the default of its row") {
  const SdeSetup setup = simulation_of({{"model", "transformer"}, {"gamma_squared", 0.25}, {"horizon", 0.5}});
  const SdeModel expected = transformer_model(ResidualWeights::shaped(0.25), 1, ShapedSlopes{});
  CHECK(setup.model.relu_drift == expected.relu_drift);
  CHECK(setup.model.attention_noise == expected.attention_noise);
  CHECK(setup.v0 == (Matrix<double>(2, 2) << 1, 0.2, 0.2, 1).finished());
  CHECK(setup.options.times == std::vector<double>{0.5});
  CHECK(setup.options.paths == 4096);
  CHECK(setup.options.max_step == SimulationOptions{}.max_step);
  CHECK_FALSE(setup.options.step_control);
  CHECK(setup.options.scheme == StepScheme::geometric);
  CHECK(setup.options.bounds.upper == 1e4);
}

TEST_CASE("configuration: times and layers are given, or parts of a horizon and of a depth") {
  const json mlp = {{"model", "mlp"}, {"points", 4}};
  const auto times = [&](const json& more) {
    json config = mlp;
    config.update(more);
    return simulation_of(config).options.times;
  };
  CHECK(times({{"depth", 8}, {"width", 16}}) == std::vector<double>{0.125, 0.25, 0.375, 0.5});
  CHECK(times({{"horizon", 1}}) == std::vector<double>{0.25, 0.5, 0.75, 1});
  CHECK(networks_of({{"network", "mlp"}, {"width", 9}, {"depth", 6}, {"points", 4}}).options.layers ==
        std::vector<Index>{2, 3, 5, 6});
}

TEST_CASE("configuration: a causal mask has its own scheme, and explosions their own steps") {
  const json attention = {{"model", "attention"}, {"gamma", 0.5}, {"mask", "causal"}, {"times", {1}}};
  CHECK(simulation_of(attention).options.scheme == StepScheme::euler_maruyama);
  CHECK(simulation_of(attention).model.mask == AttentionMask::causal);
  CHECK(read_by("explosion", attention, read_sde_setup).options.step_control == 0.005);
}

TEST_CASE("configuration: networks, their weights, and why they are drawn with their weights") {
  const NetworkSetup setup = networks_of({{"network", "unshaped_post_ln"},
                                          {"width", 16},
                                          {"gamma", 1},
                                          {"lambda", 1},
                                          {"mask", "causal"},
                                          {"layers", {1, 3}}});
  CHECK(setup.network.normalization == Normalization::post_layer_norm);
  CHECK_FALSE(setup.network.residual.preserves_variance());
  CHECK(setup.network.attention->mask == AttentionMask::causal);
  CHECK(setup.options.sampling == NetworkSampling::explicit_weights);
  CHECK_FALSE(setup.why_explicit.empty());
  const json transformer = {{"network", "shaped_transformer"},
                            {"width", 16},
                            {"gamma_squared", 0.25},
                            {"heads", 4},
                            {"hidden_width", 32},
                            {"depth", 2}};
  CHECK(networks_of(transformer).network.feedforward->hidden_width == 32);
  CHECK(networks_of(transformer).network.attention->heads == 4);
}

TEST_CASE("configuration: parts are read where the rest is there as values") {
  const json config = {{"V0", {{2, 0.5}, {0.5, 1}}}, {"times", {0.5}}, {"step_control", 0.1}};
  ConfigReader fields(config, command_fields("simulate"), "simulate");
  const Matrix<double> v0 = read_start(fields);
  const SdeModel model = attention_model(ResidualWeights::shaped(0.5), 1);
  CHECK(read_simulation(fields, model, true, v0).step_control == 0.1);
  CHECK_NOTHROW(fields.finish());
  CHECK(v0(0, 0) == 2);
}

TEST_CASE("configuration: errors name the field, what was expected and what came") {
  const json mlp = {{"model", "mlp"}, {"times", {1}}};
  const auto simulating = [&](const json& more) {
    return refused([&] {
      json config = mlp;
      config.update(more);
      return simulation_of(config);
    });
  };
  CHECK(simulating({{"max_step", 0}}) == "config.max_step: expected a number > 0, got 0");
  CHECK(simulating({{"heads", 2}}) ==
        "config.heads: has no meaning together with the other fields: leave it out");
  CHECK(simulating({{"upper", 0.5}}).starts_with("config.upper: start"));
  CHECK(simulating({{"V0", {{1, 2}, {2, 1}}}}).starts_with("config.V0"));
  CHECK(simulating({{"model", "resnet"}}) ==
        "config.gamma_squared: expected this field, or gamma or gammas, got none");
  CHECK(
      refused([] {
        return networks_of({{"network", "shaped_lstm"}, {"width", 8}, {"gamma_squared", 0.5}, {"depth", 1}});
      }).starts_with("config.network: must be one of shaped_transformer, "));
  CHECK(refused([] { return command_fields("stroll").size(); }) == "sde: there is no command stroll");
}

TEST_CASE("configuration: where weights are told by their squares alone, errors speak of nothing else") {
  const ConfigFields rows =
      without_fields(command_fields("simulate"), {"gamma", "gamma_feedforward", "lambda_feedforward"});
  const json config = {{"model", "resnet"}};
  CHECK(refused([&] {
          ConfigReader fields(config, rows, "resnet");
          return read_model(fields);
        }) == "resnet.gamma_squared: expected this field, got none");
}

TEST_CASE("configuration: gradients of several networks, each with a label of its own") {
  const json network = {{"network", "unshaped_pre_ln"}, {"gamma_squared", 0.5}};
  json config = {{"width", 8}, {"depth", 3}, {"networks", {network, network}}};
  const auto reading = [&] { return read_by("gradients", config, read_gradient_setup); };
  CHECK(refused(reading).starts_with("config.networks[1].label: appears twice"));
  config["networks"][1]["label"] = "other";
  const GradientSetup setup = reading();
  CHECK(setup.networks[1].label == "other");
  CHECK(setup.options.depth == 3);
  CHECK(setup.options.networks == GradientOptions{}.networks);
  CHECK(listed_network_fields().size() > 10);
}
