#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "covariance_sde/configuration/shared_fields.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

namespace {

using V = FieldValues;

// More than anyone waits for; products of two such counts stay within an index.
constexpr Index largest_count = 1'000'000'000;

/// Attention goes as their inverse squares.
FieldValues temperatures() { return V::within(1e-6, 1e6); }

ConfigFields residual_fields() {
  return {{"gamma_squared", V::within(0, 1), "gamma^2", "squared residual weight; lambda^2 = 1 - gamma^2"},
          {"gamma", V::within(0, 1), "its root", "residual weight: give one of the two"},
          {"lambda", V::within(0, 1), "sqrt(1 - gamma^2)",
           "shortcut weight; checked, and 1 with gamma 1 in unshaped networks only"},
          {"gamma_squared_feedforward", V::within(0, 1), "that of attention",
           "the same of the feedforward block where both blocks are there"},
          {"gamma_feedforward", V::within(0, 1), "that of attention", "the same"},
          {"lambda_feedforward", V::within(0, 1), "from gamma_feedforward", "the same"}};
}

ConfigFields shape_fields() {
  return {
      {"temperature", temperatures(), "1", "tau_0, with attention"},
      {"heads", V::integer(1, 10'000), "1", "H heads with slices of the values, no output matrix"},
      {"mask", V::words(masks), "full", "what tokens attend to"},
      {"c_plus", V::within(-1e6, 1e6), "0", "slope of the shaped ReLU above 0 is 1 + c_plus / sqrt(width)"},
      {"c_minus", V::within(-1e6, 1e6), "-1", "the same below 0"}};
}

ConfigFields model_fields_of(const FieldValues& models) {
  return joined_fields(
      {{{"model", models, "", "which blocks"}},
       residual_fields(),
       shape_fields(),
       {{"hidden_ratio", V::within(1e-6, 1e6), "1", "hidden width over width, with a residual feedforward"},
        {"finite_width_drift", V::integer(1, largest_count), "none",
         "a width whose exact ReLU drift to take; with feedforward"}}});
}

ConfigFields network_body() {
  return joined_fields(
      {{{"network",
         "shaped_transformer, shaped_attention, shaped_resnet, mlp, unshaped, unshaped_pre_ln, "
         "unshaped_post_ln, or an intervention of figure 3 (an unknown name lists them)",
         "", "which network; the unshaped ones have standard softmax attention and ReLU"}},
       residual_fields(),
       shape_fields(),
       {{"g1", V::within(-1e6, 1e6), "1; 0 of unshaped networks",
         "weight of the identity that is added to the softmax (eq. 33)"},
        {"g2", V::within(-1e6, 1e6), "1; 0 of unshaped networks", "weight of the mean that is taken from it"},
        {"key_width", V::integer(0, largest_count), "0", "of a head; 0: width / heads"},
        {"hidden_width", V::integer(0, largest_count), "0", "of the feedforward block; 0: width"}}});
}

ConfigField width_field() {
  return {"width", V::integer(1, largest_count).said("integer >= tokens"), "", "n"};
}

/// Of as many tokens as a step, which takes m^3, has an end for.
ConfigFields start_fields(Index fewest = 1, Index most = 1'000) {
  return {{"V0", "m x m", "none", "covariance of the inputs, in place of the next three"},
          {"tokens", V::integer(fewest, most), "2", "m"},
          {"variance", V::within(smallest_variance, largest_variance), "1", "of each token"},
          {"rho0", V::within(-1, 1), "0.2", "correlation of any two tokens"}};
}

ConfigField points_field(const char* of) { return {"points", V::integer(1, 100'000), "1", of}; }

ConfigFields time_fields() {
  return {
      {"times", V::above(0).increasing_list(), "horizon", "times of which results are kept"},
      {"horizon", V::above(0), "depth / width", "the only time, where times is not given"},
      {"depth", V::integer(1, largest_count), "none", "with width, where neither times nor horizon is given"},
      {"width", V::integer(1, largest_count), "none", "see depth"},
      points_field("how many times, evenly up to the only one, where times is not given")};
}

FieldValues above_lower() { return V::above(0).said("number > lower"); }

ConfigFields seed_and_bounds(const char* lower, const char* upper,
                             const FieldValues& uppers = above_lower()) {
  return {{"seed", V::integer_at_least(0), "0", "of all that is drawn"},
          {"lower", V::at_least(0), lower, "a path stops once an eigenvalue is below; 0: never"},
          {"upper", uppers, upper, "a path stops once an eigenvalue is above"}};
}

ConfigFields step_fields(const char* step_control) {
  return {{"max_step", V::above(0), shown(SimulationOptions{}.max_step), "largest step of the SDE"},
          {"step_control", V::zero_or_at_least(1e-6), step_control,
           "steps are cut to this over the rate of attention; 0: never; with attention only"},
          {"scheme", V::words(step_schemes), "geometric; euler_maruyama with a causal mask",
           "integrator; geometric is for the full mask"}};
}

ConfigFields path_fields(const char* step_control, const char* upper,
                         const FieldValues& uppers = above_lower()) {
  return joined_fields({{{"paths", V::integer(1, largest_count), "4096", "of the SDE"}},
                        step_fields(step_control),
                        seed_and_bounds("0", upper, uppers)});
}

/// `fewest` samples.
ConfigFields layer_fields(Index fewest = 1) {
  return {{"layers", V::integer(1, largest_count).increasing_list(), "depth",
           "layers after which results are kept"},
          {"depth", V::integer(1, largest_count), "none", "the last layer, where layers is not given"},
          points_field("how many layers, evenly up to depth, where layers is not given"),
          {"samples", V::integer(fewest, largest_count), "4096", "networks"},
          {"sampling", V::words(network_samplings), "reduced; explicit_weights where there is no reduction",
           "reduced: m x m matrices of the same distribution"}};
}

ConfigFields network_fields(Index fewest_samples = 1) {
  return joined_fields({network_body(),
                        {width_field()},
                        start_fields(),
                        layer_fields(fewest_samples),
                        seed_and_bounds("0", "1e300")});
}

FieldValues model_names() { return V::words({"transformer", "attention", "resnet", "mlp"}); }
constexpr const char* default_control = "0.02 with attention, 0 without";

ConfigFields grid_fields() {
  return {{"gammas", V::within(0, 1).different_list(), "gamma",
           "residual weights of both blocks, in place of gamma"},
          {"temperatures", temperatures().different_list(), "temperature",
           "in place of temperature; with gammas a grid"}};
}

using CommandFields = std::map<std::string, ConfigFields, std::less<>>;

CommandFields all_command_fields() {
  const ConfigFields simulation = joined_fields(
      {model_fields_of(model_names()), start_fields(), time_fields(), path_fields(default_control, "1e4")});
  const ConfigFields law =
      joined_fields({without_fields(model_fields_of(V::words({"attention", "resnet", "mlp"})),
                                    {"gamma_squared_feedforward", "gamma_feedforward", "lambda_feedforward"}),
                     start_fields(2, 2), time_fields()});
  const ConfigFields grid = grid_fields();
  const ConfigFields networks = {{"networks", "list of networks, or of objects with fields of one and label",
                                  "network",
                                  "several in place of network, each with the other fields unless it has its "
                                  "own; a first column tells them apart"}};
  const ConfigFields gradients = {
      {"networks", "list of objects with the fields of sde network's networks, and label", "",
       "network, residual weights, temperature, heads, mask, c_plus, c_minus, g1, g2, key_width and "
       "hidden_width of each"},
      width_field(),
      {"depth", V::integer(1, largest_count), "", "layers"},
      {"samples", V::integer(2, largest_count), shown(GradientOptions{}.networks), "networks of each kind"},
      {"seed", V::integer_at_least(0), "0", "of all that is drawn"}};
  return {{"simulate", joined_fields({grid, simulation})},
          {"network", joined_fields({networks, grid, network_fields()})},
          {"compare", joined_fields({grid,
                                     network_fields(2),
                                     {{"paths", V::integer(2, largest_count), "samples", "of the SDE"}},
                                     step_fields(default_control)})},
          {"stopping-time", joined_fields({grid,
                                           network_body(),
                                           {width_field()},
                                           start_fields(),
                                           layer_fields(),
                                           seed_and_bounds("1e-4", "1e4")})},
          {"output",
           joined_fields({{{"outputs", V::integer(1, 1'000'000), "1", "outputs of each network or path"},
                           {"network", "see sde network", "none",
                            "with the fields of sde network; without it those of sde simulate:"}},
                          simulation})},
          {"output of networks",
           joined_fields({{{"outputs", V::integer(1, 1'000'000), "1", "outputs of each network or path"}},
                          network_fields()})},
          {"entropy", network_fields(2)},
          {"explosion", joined_fields({model_fields_of(model_names()), start_fields(), time_fields(),
                                       path_fields("0.005", "1e6", V::at_least(1e3))})},
          {"law", joined_fields({grid, law})},
          {"coefficients",
           joined_fields({model_fields_of(model_names()), start_fields(1, most_coefficient_tokens)})},
          {"flow",
           joined_fields({{{"flow", V::words({"drift", "commuting"}), "drift",
                            "drift: dV = b(V) dt of the model; commuting: the unshaped ReLU ResNet with "
                            "gamma = 1 / sqrt(depth), of times layer / depth, without the fields of a model"},
                           {"shortcut", V::words(shortcuts), "unit",
                            "of the commuting limit: lambda = 1, or lambda^2 = 1 - 1 / depth"}},
                          without_fields(model_fields_of(model_names()), {"heads", "hidden_ratio"}),
                          start_fields(),
                          time_fields()})},
          {"gradients", joined_fields({gradients, start_fields()})}};
}

}  // namespace

const ConfigFields& listed_network_fields() {
  static const ConfigFields fields = joined_fields(
      {{{"label", V::filled_text(), "network", "its name in tables and pictures"}}, network_body()});
  return fields;
}

const ConfigFields& command_fields(std::string_view command) {
  static const CommandFields fields = all_command_fields();
  const auto place = fields.find(command);
  if (place == fields.end()) throw ArgumentError(fmt::format("sde: there is no command {}", command));
  return place->second;
}

}  // namespace widelimit::covariance_sde
