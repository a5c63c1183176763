#include "widelimit/layers/attention.hpp"

#include "models/parts.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/blocks.hpp"

namespace widelimit::models {
namespace {

/// depth x (convolution + ReLU), `head`, flatten, readout.
Layers behind_convolutions(const Settings& settings, const Layers& head) {
  return concatenated(
      {convolutions(settings, settings.integer("depth")), head, {layers::flatten(), readout()}});
}

/// The only attention of arXiv:2006.10540 without a layer norm after it (section 5.1).
Layers vanilla(const Settings& settings) {
  layers::AttentionOptions attention;
  attention.query_key_std = settings.real("query_key_std");
  return behind_convolutions(settings, {layers::attention(attention)});
}

Layers structured(const Settings& settings) {
  const double alpha = settings.real("alpha");
  layers::AttentionOptions attention;
  attention.query_key_std = settings.real("query_key_std");
  attention.positions = layers::PositionalEncodings{
      .covariance = layers::StructuredPositions{.rho = settings.real("rho"), .phi = settings.real("phi")},
      .input_weight = alpha,
      .position_weight = 1 - alpha};
  return behind_convolutions(settings, {layers::attention(attention), layers::layer_norm()});
}

Layers residual(const Settings& settings) {
  const auto scale = settings.integer("row_sum") == 1 ? layers::PositionScale::mean_row_sum
                                                      : layers::PositionScale::variance;
  const Layers attention =
      residual_attention({.skip_share = settings.real("alpha"),
                          .positions = {.rho = settings.real("rho"), .phi = settings.real("phi")},
                          .scale = scale});
  return behind_convolutions(settings, concatenated({attention, {layers::rms_norm()}}));
}

std::vector<NetworkOption> attention_options(const std::vector<NetworkOption>& own) {
  const std::vector<NetworkOption> depth{
      depth_option("convolutions before the attention, each followed by a ReLU", 3)};
  return with_options(with_options(depth, own), convolution_options());
}

NetworkOption query_key_std_option() {
  return real_option("query_key_std", "product of the standard deviations of query and key weights", 2, 0,
                     1e6);
}

NetworkOption phi_option(double phi) {
  return real_option("phi", "how fast positions decorrelate: exp(-phi r^2), r in image sizes", phi, 0, 1e6);
}

std::vector<NetworkOption> structured_options() {
  return {real_option("alpha", "queries and keys see alpha K + (1 - alpha) R of inputs K and positions R",
                      0.75, 0, 1),
          real_option("rho", "variance of the positional encodings", 1, 0, 1e6), phi_option(2.5)};
}

std::vector<NetworkOption> residual_options() {
  return {real_option(
              "alpha",
              "alpha K + (1 - alpha) R K R^T: share of the skip connection around attention by positions R",
              0.75, 0, 1),
          real_option("rho", "variance of positions; with row_sum=1 the mean row sum of R", 1, 0, 1e6),
          phi_option(2.5),
          integer_option(
              "row_sum",
              "0: rows of R as published; 1: rho is relative to their sums, so that alpha weighs equal parts",
              0, 0, 1)};
}

}  // namespace

std::vector<NetworkRecipe> attention_recipes() {
  return {
      {{.name = "vanilla",
        .description = "depth x (convolution + ReLU), softmax attention without positions or norm, flatten",
        .options = attention_options({query_key_std_option()})},
       vanilla},
      {{.name = "struct",
        .description =
            "depth x (convolution + ReLU), softmax attention with structured positions in queries and "
            "keys, layer norm, flatten",
        .options = attention_options(with_options({query_key_std_option()}, structured_options()))},
       structured},
      {{.name = "residual-attention",
        .description =
            "depth x (convolution + ReLU), skip connection around attention by positions alone, RMS "
            "norm, flatten",
        .options = attention_options(residual_options())},
       residual}};
}

}  // namespace widelimit::models
