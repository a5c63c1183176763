#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>
#include <widelimit/error.hpp>
#include <widelimit/layers/activations.hpp>
#include <widelimit/layers/attention.hpp>
#include <widelimit/layers/convolution.hpp>
#include <widelimit/layers/dense.hpp>
#include <widelimit/layers/layer_norm.hpp>
#include <widelimit/layers/pooling.hpp>
#include <widelimit/models/blocks.hpp>
#include <widelimit/network/network.hpp>

#include "argument_list.hpp"

/// The image networks of arXiv:2006.10540, section 5: depth x (3 x 3 convolution + ReLU), a head, a dense
/// readout.
namespace examples {

namespace layers = widelimit::layers;
using widelimit::Index;
using widelimit::Layers;
using widelimit::Network;

/// sigma_Q sigma_K for query and key weights of variance 2 each.
inline constexpr double query_key_std = 2;

/// Hyperparameters of structured positions. For Struct, rho = 1 gives the encodings the mean variance of the
/// images at the attention's input, so that alpha and 1 - alpha weigh parts of equal size. For Residual, whose queries
/// and keys see no images, it is the variance of R.
struct Positions {
  double alpha = 0.5;
  double rho = 1;
  double phi = 16;
};

/// --alpha, --rho, --phi for Struct, --residual-alpha, --residual-rho, --residual-phi for Residual.
inline void add_position_arguments(ArgumentList& arguments, Positions& of_struct, Positions& of_residual) {
  const auto add = [&arguments](const char* name, double& value, const char* description) {
    arguments.number(name, value, description, Sign::not_negative);
  };
  add("--alpha", of_struct.alpha, "Struct: weight of the images in queries and keys, at most 1");
  add("--rho", of_struct.rho, "Struct: variance of the encodings relative to that of the images");
  add("--phi", of_struct.phi, "Struct: decay of exp(-phi r^2), r in image sizes");
  add("--residual-alpha", of_residual.alpha, "Residual: share of the skip connection, at most 1");
  add("--residual-rho", of_residual.rho, "Residual: variance of the encodings");
  add("--residual-phi", of_residual.phi, "Residual: decay of exp(-phi r^2)");
}

/// softmax, identity, relu or abs.
inline layers::AttentionWeights weights_by_name(const std::string& name) {
  if (name == "softmax") return layers::AttentionWeights::softmax();
  if (name == "identity") return layers::AttentionWeights::elementwise(layers::identity());
  if (name == "relu") return layers::AttentionWeights::elementwise(layers::relu());
  return layers::AttentionWeights::elementwise(layers::abs());
}

/// Attention with 1/sqrt(width) scaling.
inline layers::AttentionOptions sqrt_attention(const std::string& weights) {
  layers::AttentionOptions options;
  options.scaling = layers::AttentionScaling::inverse_sqrt_width;
  options.weights = weights_by_name(weights);
  options.query_key_std = query_key_std;
  return options;
}

inline Layers convolutions(Index depth) {
  Layers result;
  for (Index i = 0; i < depth; ++i) {
    result.push_back(
        layers::conv({.filter = {3, 3}, .strides = {}, .weight_variance = 2, .bias_variance = 0.01}));
    result.push_back(layers::relu());
  }
  return result;
}

/// The only attention of the paper without a layer norm after it (section 5.1).
inline Layers vanilla_head() {
  layers::AttentionOptions attention;
  attention.query_key_std = query_key_std;
  return {layers::attention(attention), layers::flatten()};
}

/// `variance`: the mean variance at the attention's input.
inline Layers struct_head(const Positions& positions, double variance) {
  layers::AttentionOptions attention;
  attention.query_key_std = query_key_std;
  attention.positions = layers::PositionalEncodings{
      .covariance = layers::StructuredPositions{.rho = positions.rho * variance, .phi = positions.phi},
      .input_weight = positions.alpha,
      .position_weight = 1 - positions.alpha};
  return {layers::attention(attention), layers::layer_norm(), layers::flatten()};
}

inline Layers residual_head(const Positions& positions) {
  Layers head = widelimit::models::residual_attention(
      {.skip_share = positions.alpha, .positions = {.rho = positions.rho, .phi = positions.phi}});
  head.push_back(layers::rms_norm());
  head.push_back(layers::flatten());
  return head;
}

/// Convolutions, head and readout (weight variance 1, no bias).
inline Network with_readout(std::string name, const Layers& front, const Layers& head) {
  Layers all = front;
  all.insert(all.end(), head.begin(), head.end());
  all.push_back(layers::dense());
  return {std::move(name), std::move(all)};
}

/// What a head by name needs to know: `variance` at its input, hyperparameters of Struct and Residual.
struct HeadContext {
  double variance;
  Positions struct_positions;
  Positions residual_positions;
};

/// flatten, gap, lap (average pooling over 3 x 3 windows), vanilla, struct or residual.
inline Layers head_by_name(const std::string& name, const HeadContext& context) {
  if (name == "flatten") return {layers::flatten()};
  if (name == "gap") return {layers::global_average_pool()};
  if (name == "lap")
    return {layers::average_pool({.window = {3, 3}, .strides = {1, 1}, .padding = widelimit::Padding::same}),
            layers::flatten()};
  if (name == "vanilla") return vanilla_head();
  if (name == "struct") return struct_head(context.struct_positions, context.variance);
  if (name == "residual") return residual_head(context.residual_positions);
  throw widelimit::ArgumentError("no head is named " + name +
                                 "; known are flatten, gap, lap, vanilla, struct and residual");
}

}  // namespace examples
