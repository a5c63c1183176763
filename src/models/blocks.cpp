#include "widelimit/models/blocks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"

namespace widelimit::models {

Layers residual_attention(const ResidualAttentionOptions& options) {
  const double alpha = options.skip_share;
  if (!(alpha >= 0 && alpha <= 1))
    throw ArgumentError(fmt::format("residual_attention: skip_share must lie in [0, 1], got {}", alpha));
  layers::AttentionOptions attention;
  attention.weights = options.weights;
  attention.positions = layers::PositionalEncodings{
      .covariance = options.positions, .input_weight = 0, .position_weight = 1, .scale = options.scale};
  return {layers::sum({{.scale = std::sqrt(alpha), .layers = {}},
                       {.scale = std::sqrt(1 - alpha), .layers = {layers::attention(attention)}}})};
}

Layers transformer_block(const TransformerBlockOptions& options) {
  const Layers attention{layers::layer_norm(), layers::attention(options.attention)};
  const Layers dense{
      layers::layer_norm(),
      layers::dense({.weight_variance = options.weight_variance, .bias_variance = options.bias_variance}),
      options.activation, layers::dense({.weight_variance = options.output_weight_variance})};
  return {layers::sum({{.scale = options.skip_scale, .layers = {}},
                       {.scale = options.attention_scale, .layers = attention}}),
          layers::sum({{.scale = options.skip_scale, .layers = {}},
                       {.scale = options.dense_scale, .layers = dense}})};
}

Layers gated_mlp(const GatedMlpOptions& options) {
  const Layers gate{layers::dense({.weight_variance = options.gate_weight_variance,
                                   .bias_variance = options.gate_bias_variance}),
                    options.activation};
  const Layers value{layers::dense({.weight_variance = options.value_weight_variance})};
  return {layers::product({{.scale = 1, .layers = gate}, {.scale = 1, .layers = value}}),
          layers::dense({.weight_variance = options.output_weight_variance})};
}

Layers decoder_block(const DecoderBlockOptions& options) {
  const Layers attention{layers::rms_norm(), layers::attention(options.attention)};
  Layers mlp{layers::rms_norm()};
  for (const Layer& layer : gated_mlp(options.mlp)) mlp.push_back(layer);
  return {layers::sum({{.scale = options.skip_scale, .layers = {}},
                       {.scale = options.attention_scale, .layers = attention}}),
          layers::sum(
              {{.scale = options.skip_scale, .layers = {}}, {.scale = options.mlp_scale, .layers = mlp}})};
}

}  // namespace widelimit::models
