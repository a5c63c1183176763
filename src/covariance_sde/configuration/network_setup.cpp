#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "covariance_sde/configuration/shared_fields.hpp"
#include "widelimit/covariance_sde/checks.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::covariance_sde {

namespace {

/// "layers", or "points" of them up to "depth".
std::vector<Index> read_layers(ConfigReader& fields) {
  fields.require_one("layers", {"depth"}, "depth");
  if (fields.has("layers")) return fields.integers("layers");
  const Index depth = fields.integer("depth"), points = fields.integer("points");
  if (points > depth)
    fields.fail("points", fmt::format("expected at most the depth, {}, got {}", depth, points));
  std::vector<Index> layers;
  for (Index k = 1; k <= points; ++k)
    layers.push_back(static_cast<Index>(
        std::llround(static_cast<double>(depth) * static_cast<double>(k) / static_cast<double>(points))));
  return layers;
}

NetworkSpec read_intervention(ConfigReader& fields, Index width, const std::string& name) {
  const auto networks = attention_interventions(width, read_residual(fields), fields.number("temperature"));
  for (const NamedNetwork& network : networks)
    if (network.name == name) return network.network;
  std::string known =
      "shaped_transformer, shaped_attention, shaped_resnet, mlp, unshaped, unshaped_pre_ln, unshaped_post_ln";
  for (const NamedNetwork& network : networks) known += ", " + network.name;
  fields.fail("network", fmt::format("must be one of {}; got {}", known, name));
}

NetworkSpec read_unshaped(ConfigReader& fields, Index width, const std::string& name) {
  return unshaped_transformer(width, read_residual(fields),
                              name == "unshaped"          ? Normalization::none
                              : name == "unshaped_pre_ln" ? Normalization::pre_layer_norm
                                                          : Normalization::post_layer_norm);
}

NetworkSpec read_named_network(ConfigReader& fields, Index width) {
  const std::string name = fields.text("network");
  if (name == "mlp") return shaped_mlp(width, read_slopes(fields));
  if (name == "shaped_resnet") return shaped_resnet(width, read_residual(fields), read_slopes(fields));
  if (name == "shaped_attention")
    return shaped_attention(width, read_residual(fields), fields.number("temperature"));
  if (name == "shaped_transformer")
    return shaped_transformer(width, read_residual(fields), fields.number("temperature"),
                              read_slopes(fields));
  if (name == "unshaped" || name == "unshaped_pre_ln" || name == "unshaped_post_ln")
    return read_unshaped(fields, width, name);
  return read_intervention(fields, width, name);
}

Index heads_of(const NetworkSpec& network) { return network.attention ? network.attention->heads : 1; }

/// g_1 and g_2 of eq. 33, which the interventions of figure 3 have in their names.
void read_weights_of_terms(ConfigReader& fields, AttentionBlock& block) {
  const std::string name = fields.text("network");
  if (!name.starts_with("unshaped") && name != "shaped_attention" && name != "shaped_transformer") return;
  block.identity_weight = fields.number("g1", block.identity_weight);
  block.centring_weight = fields.number("g2", block.centring_weight);
}

/// What two fields must have in common.
void check_spec(ConfigReader& fields, const NetworkSpec& network) {
  if (network.width % heads_of(network) != 0)
    fields.fail("heads",
                fmt::format("expected a divisor of the width, {}, got {}", network.width, heads_of(network)));
  if (!fields.text("network").starts_with("unshaped")) {
    require_shaped(fields, network.residual);
    if (network.feedforward_residual) require_shaped(fields, *network.feedforward_residual, "_feedforward");
    return;
  }
  const bool standard = network.attention->identity_weight == 0 && network.attention->centring_weight == 0;
  if (!network.residual.preserves_variance() && !standard)
    fields.fail("lambda",
                "expected lambda^2 + gamma^2 = 1 with g1 or g2 other than 0, got lambda = gamma = 1");
}

NetworkSpec read_spec(ConfigReader& fields, Index width) {
  NetworkSpec network = read_named_network(fields, width);
  if (network.attention) {
    read_weights_of_terms(fields, *network.attention);
    network.attention->mask = read_mask(fields);
    network.attention->heads = fields.integer("heads");
    network.key_width = fields.integer("key_width");
  }
  if (network.feedforward) {
    network.feedforward->hidden_width = fields.integer("hidden_width");
    if (network.attention) network.feedforward_residual = read_feedforward_residual(fields);
  }
  check_spec(fields, network);
  return network;
}

/// Widths against tokens.
void check_sizes(const ConfigReader& fields, const NetworkSetup& setup) {
  const NetworkSpec& network = setup.network;
  const Index tokens = setup.v0.rows(),
              least = network.normalization == Normalization::none ? tokens : tokens + 1;
  if (network.width < least)
    fields.fail("width",
                fmt::format("expected at least {} for {} tokens, got {}", least, tokens, network.width));
  if (setup.options.sampling == NetworkSampling::explicit_weights) return;
  if (network.normalization == Normalization::post_layer_norm ||
      (network.normalization != Normalization::none && heads_of(network) > 1))
    fields.fail(
        "sampling",
        "expected explicit_weights for Post-LN and for Pre-LN with several heads, which have no reduction");
  if (heads_of(network) > 1 && network.width / heads_of(network) < tokens)
    fields.fail("heads", fmt::format("expected at most width / tokens = {} with reduced sampling, got {}",
                                     network.width / tokens, heads_of(network)));
}

}  // namespace

NetworkSpec read_network(ConfigReader& fields) { return read_spec(fields, fields.integer("width")); }

NetworkSetup read_network_setup(ConfigReader& fields) {
  const NetworkSpec network = read_network(fields);
  return read_sampling(fields, network, read_start(fields));
}

NetworkSetup read_sampling(ConfigReader& fields, const NetworkSpec& network, Matrix<double> v0) {
  NetworkSetup setup{.network = network, .v0 = std::move(v0), .options = {}};
  setup.options.layers = read_layers(fields);
  setup.options.samples = fields.integer("samples");
  require_room(fields, "samples", setup.options.samples, setup.v0, setup.options.layers.size());
  setup.options.seed = read_seed(fields);
  setup.options.bounds = read_bounds(fields, setup.v0);
  const SamplingChoice usual = usual_sampling(setup.network, setup.v0.rows());
  setup.options.sampling = fields.choice("sampling", network_samplings, usual.sampling);
  if (!fields.has("sampling")) setup.why_explicit = usual.reason;
  check_sizes(fields, setup);
  return setup;
}

GradientOptions read_gradient_options(ConfigReader& fields) {
  GradientOptions options;
  options.depth = fields.integer("depth");
  options.networks = fields.integer("samples");
  options.seed = read_seed(fields);
  return options;
}

GradientSetup read_gradient_setup(ConfigReader& fields) {
  GradientSetup setup;
  const Index width = fields.integer("width");
  const nlohmann::json& entries = fields.value("networks");
  if (!entries.is_array() || entries.empty())
    fields.fail("networks", fmt::format("must be a list of networks, got {}", shown_json(entries)));
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::string path = fmt::format("{}.networks[{}]", fields.path(), k);
    ConfigReader entry(entries[k], listed_network_fields(), path);
    const std::string label = entry.text("label", entry.text("network"));
    for (const GradientSetup::Network& other : setup.networks)
      if (other.label == label)
        entry.fail("label",
                   fmt::format("appears twice in networks, \"{}\"; give each a label of its own", label));
    setup.networks.push_back({label, read_spec(entry, width)});
    entry.finish(unused_field);
  }
  setup.v0 = read_start(fields);
  for (std::size_t k = 0; k < setup.networks.size(); ++k)
    naming_errors(fields.path() + ".width", [&] {
      require_network(fmt::format("networks[{}]", k), setup.networks[k].network, setup.v0.rows());
    });
  setup.options = read_gradient_options(fields);
  return setup;
}

}  // namespace widelimit::covariance_sde
