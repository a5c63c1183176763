#include "covariance_sde/network_spec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "covariance_sde/arguments.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

bool is_unshaped(const NetworkSpec& network) {
  const bool attention =
      !network.attention ||
      (network.attention->identity_weight == 0 && network.attention->centring_weight == 0 &&
       network.attention->temperature_scale == TemperatureScale::key);
  const bool feedforward = !network.feedforward ||
                           (network.feedforward->slopes.plus == 1 && network.feedforward->slopes.minus == 0);
  return attention && feedforward;
}

bool preserves_variance(const NetworkSpec& network) {
  return network.residual.preserves_variance() && feedforward_residual_of(network).preserves_variance();
}

void require_attention(std::string_view where, const NetworkSpec& network) {
  require_positive(where, "temperature", network.attention->temperature);
  const Index heads = network.attention->heads;
  require_at_least(where, "heads", heads, 1);
  if (network.width % heads != 0)
    throw ArgumentError(
        fmt::format("{}: heads must divide the width, got {} and {}", where, heads, network.width));
}

}  // namespace

AttentionBlock AttentionBlock::standard() {
  return {.identity_weight = 0,
          .centring_weight = 0,
          .temperature = 1,
          .temperature_scale = TemperatureScale::key};
}

NetworkSpec shaped_resnet(Index width, ResidualWeights residual, ShapedSlopes slopes) {
  return {
      .width = width, .residual = residual, .feedforward = FeedforwardBlock{shaped_slopes(slopes, width)}};
}

NetworkSpec shaped_mlp(Index width, ShapedSlopes slopes) {
  return {.width = width, .plain = shaped_slopes(slopes, width)};
}

NetworkSpec shaped_attention(Index width, ResidualWeights residual, double temperature) {
  return {.width = width, .residual = residual, .attention = AttentionBlock{.temperature = temperature}};
}

NetworkSpec shaped_transformer(Index width, ResidualWeights residual, double temperature,
                               ShapedSlopes slopes) {
  NetworkSpec network = shaped_attention(width, residual, temperature);
  network.feedforward = FeedforwardBlock{shaped_slopes(slopes, width)};
  return network;
}

NetworkSpec unshaped_transformer(Index width, ResidualWeights residual, Normalization normalization) {
  return {.width = width,
          .residual = residual,
          .attention = AttentionBlock::standard(),
          .feedforward = FeedforwardBlock{{.plus = 1, .minus = 0}},
          .normalization = normalization};
}

std::vector<NamedNetwork> attention_interventions(Index width, ResidualWeights residual, double temperature) {
  const auto network = [&](double identity, double centring, TemperatureScale scale) {
    NetworkSpec spec = shaped_attention(width, residual, temperature);
    spec.attention->identity_weight = identity;
    spec.attention->centring_weight = centring;
    spec.attention->temperature_scale = scale;
    return spec;
  };
  constexpr auto wide = TemperatureScale::width_and_key, narrow = TemperatureScale::key;
  // Names say what the shaped network lacks, or what the standard one is given alone.
  return {{"shaped", network(1, 1, wide)},
          {"no identity", network(0, 1, wide)},
          {"no centring", network(1, 0, wide)},
          {"no width in temperature", network(1, 1, narrow)},
          {"identity only", network(1, 0, narrow)},
          {"centring only", network(0, 1, narrow)},
          {"width in temperature only", network(0, 0, wide)},
          {"standard softmax", network(0, 0, narrow)}};
}

double softmax_temperature(const NetworkSpec& network) {
  const auto n = static_cast<double>(network.width), key = static_cast<double>(key_width_of(network));
  const bool wide = network.attention->temperature_scale == TemperatureScale::width_and_key;
  return network.attention->temperature * std::sqrt(wide ? n * key : key);
}

SamplingChoice usual_sampling(const NetworkSpec& network, Index tokens) {
  const auto by_weights = [](std::string reason) {
    return SamplingChoice{NetworkSampling::explicit_weights, std::move(reason)};
  };
  if (network.normalization == Normalization::post_layer_norm) return by_weights("Post-LN has no reduction");
  const Index heads = heads_of(network);
  if (heads <= 1) return {};
  if (network.normalization != Normalization::none)
    return by_weights(fmt::format("Pre-LN with {} heads has no reduction", heads));
  // With fewer channels than tokens the Gram matrix of a slice would be singular.
  if (network.width / heads < tokens)
    return by_weights(
        fmt::format("slices of width / heads = {} channels have no reduction, being fewer than {} tokens",
                    network.width / heads, tokens));
  return {};
}

void require_reduction(std::string_view where, const NetworkSpec& network, Index tokens) {
  const SamplingChoice usual = usual_sampling(network, tokens);
  if (usual.sampling != NetworkSampling::reduced)
    throw ArgumentError(fmt::format("{}: {}, sample it by explicit weights", where, usual.reason));
  const Index heads = heads_of(network);
  if (heads == 1) return;
  const auto m = static_cast<double>(tokens);
  numerics::require_memory(where, fmt::format("Gram matrices of the slices of {} heads", heads),
                           static_cast<double>(heads) * m * m * sizeof(double), "take fewer heads");
}

void require_network(std::string_view where, const NetworkSpec& network, Index tokens) {
  if (network.plain &&
      (network.attention || network.feedforward || network.normalization != Normalization::none))
    throw ArgumentError(fmt::format(
        "{}: a multilayer perceptron has neither blocks nor a normalisation, got some as well", where));
  if (!network.attention && !network.feedforward && !network.plain)
    throw ArgumentError(
        fmt::format("{}: a network needs an attention or a feedforward block, got neither", where));
  // A normalisation takes one direction of the width away.
  require_at_least(where, "width", network.width,
                   network.normalization == Normalization::none ? tokens : tokens + 1);
  require_at_least(where, "key_width", network.key_width, 0);
  if (network.attention) require_attention(where, network);
  if (network.feedforward) {
    require_at_least(where, "hidden_width", network.feedforward->hidden_width, 0);
    // A normaliser that is infinite or NaN fails this, too.
    require_positive(where, "s_plus^2 + s_minus^2", 2 / network.feedforward->slopes.normaliser());
  }
  if (network.plain) require_positive(where, "s_plus^2 + s_minus^2", 2 / network.plain->normaliser());
  if (!preserves_variance(network) && !is_unshaped(network))
    throw ArgumentError(
        fmt::format("{}: lambda^2 + gamma^2 must be 1 except in the unshaped baselines (standard softmax, "
                    "ReLU), got lambda = gamma = 1",
                    where));
}

SdeModel limiting_model(const NetworkSpec& network) {
  require_network("limiting_model", network, 1);
  const bool shaped_attention =
      !network.attention ||
      (network.attention->identity_weight == 1 && network.attention->centring_weight == 1 &&
       network.attention->temperature_scale == TemperatureScale::width_and_key);
  if (!shaped_attention || network.normalization != Normalization::none)
    throw ArgumentError(
        "limiting_model: only shaped networks have an SDE limit: identity and centring weight 1, "
        "temperature tau_0 sqrt(n n_k), no normalisation");
  const double root = std::sqrt(static_cast<double>(network.width));
  const auto shaped = [root](ActivationSlopes slopes) {
    // Shaped slopes are 1 + c / sqrt(n), solved for c.
    return ShapedSlopes{(slopes.plus - 1) * root, (slopes.minus - 1) * root};
  };
  if (network.plain) return mlp_model(shaped(*network.plain));
  SdeModel model;
  if (network.attention)
    model = attention_model(network.residual, network.attention->temperature, network.attention->mask,
                            network.attention->heads);
  if (!network.feedforward) return model;
  const double ratio = static_cast<double>(hidden_width_of(network)) / static_cast<double>(network.width);
  return stack(model,
               resnet_model(feedforward_residual_of(network), shaped(network.feedforward->slopes), ratio));
}

}  // namespace widelimit::covariance_sde
