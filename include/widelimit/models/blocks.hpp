#pragma once

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/layer.hpp"

/// Parts of networks that have their own names, made of library layers: splice the layers into a
/// network.
namespace widelimit::models {

/// Options of residual_attention().
struct ResidualAttentionOptions {
  double skip_share = 0.75;  ///< alpha in [0, 1].
  layers::StructuredPositions positions{.rho = 1, .phi = 2.5};
  /// The meaning of the positions' rho: the variance, as in the paper's formula, or the mean row sum of R.
  layers::PositionScale scale = layers::PositionScale::variance;
  /// With the identity A = R.
  layers::AttentionWeights weights = layers::AttentionWeights::elementwise(layers::identity());
};

/// Residual attention, a single sum layer: a skip connection of scale sqrt(alpha) added to attention of scale
/// sqrt(1 - alpha) whose queries and keys see only the positional encodings. With R the position covariance:
///     K' = alpha K + (1 - alpha) R K R^T,   T' = alpha T + (1 - alpha) (R T R^T + 2 R K R^T)
/// alpha = 1 is the identity. After a nonlinearity the sum is not Gaussian: follow it by rms_norm(), dense()
/// or conv(), not by layer_norm().
///
/// The rows of the paper's R sum to about the number of positions, if phi is not large, and attention outweighs the
/// skip connection by the square of that, whatever alpha is. With PositionScale::mean_row_sum they sum to rho on
/// average, so that at rho = 1 R K R^T is K averaged over neighbours and alpha weighs parts of equal size.
///
/// Errors  ArgumentError for alpha out of range and for positions that attention() rejects.
///
/// Source  Hron, Bahri, Sohl-Dickstein, Novak, "Infinite attention", ICML 2020, section 5. docs/experiments/
///         infinite-attention.md compares both scales.
[[nodiscard]] Layers residual_attention(const ResidualAttentionOptions& options = {});

/// Options of transformer_block().
struct TransformerBlockOptions {
  layers::AttentionOptions attention{};
  Layer activation = layers::relu();
  double weight_variance = 2;         ///< Of the first dense layer, the one before the activation.
  double bias_variance = 0.01;        ///< The same.
  double output_weight_variance = 1;  ///< Of the second dense layer; it has no bias.
  double skip_scale = 1;              ///< Of both skip connections.
  double attention_scale = 1;         ///< Of the attention branch.
  double dense_scale = 1;             ///< Of the branch of dense layers.
};

/// A transformer block with norms before its branches, two sum layers:
///     y = skip_scale x + attention_scale attention(layer_norm(x))
///     z = skip_scale y + dense_scale dense(activation(dense(layer_norm(y))))
/// Needs Gaussian channels (or raw inputs): put dense() or conv() before it. With skip_scale^2 +
/// branch_scale^2 = 1 variances stay of order one at any depth.
///
/// Errors  ArgumentError for options that the layers reject.
[[nodiscard]] Layers transformer_block(const TransformerBlockOptions& options = {});

/// Options of gated_mlp().
struct GatedMlpOptions {
  Layer activation =
      layers::silu();  ///< Of the gate: SwiGLU; layers::gelu() makes it GEGLU, layers::relu() ReGLU.
  double gate_weight_variance = 2;    ///< Of the dense layer before the activation.
  double gate_bias_variance = 0;      ///< The same.
  double value_weight_variance = 1;   ///< Of the dense layer in parallel to it.
  double output_weight_variance = 1;  ///< Of the dense layer after the product.
};

/// A gated layer, a product and a dense layer: output(activation(gate(x)) o value(x)), o number by number. With G the
/// covariance after the gate's activation and V that of the values, the product has K' = G V, T' = T_G V + G T_V.
///
/// Errors  ArgumentError for variances that the layers reject.
///
/// Source  Shazeer, "GLU variants improve transformer", 2020, arXiv:2002.05202, equation 6.
[[nodiscard]] Layers gated_mlp(const GatedMlpOptions& options = {});

/// Options of decoder_block().
struct DecoderBlockOptions {
  /// Causal softmax of scaling 1/width with rotary positions of base 10000 and 4 pairs.
  layers::AttentionOptions attention{.mask = AttentionMask::causal,
                                     .sequence = {.rotary = layers::RotaryPositions::with_base(10000, 4)}};
  GatedMlpOptions mlp = {};
  double skip_scale = 1;       ///< Of both skip connections.
  double attention_scale = 1;  ///< Of the attention branch.
  double mlp_scale = 1;        ///< Of the gated branch.
};

/// A decoder block as in language models, two sum layers:
///     y = skip_scale x + attention_scale attention(rms_norm(x))
///     z = skip_scale y + mlp_scale gated_mlp(rms_norm(y))
/// For sequences. It may follow anything, including raw inputs.
///
/// Errors  ArgumentError for options that the layers reject.
///
/// Source  Touvron et al., "LLaMA", 2023, arXiv:2302.13971, section 2.2.
[[nodiscard]] Layers decoder_block(const DecoderBlockOptions& options = {});

}  // namespace widelimit::models
