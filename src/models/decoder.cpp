#include "models/parts.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/blocks.hpp"

/// The decoder of today's language models: RMS norms, rotary causal attention, gated layers.
namespace widelimit::models {
namespace {

Layer gate_of(const Settings& settings) {
  switch (settings.integer("gate")) {
    case 1:
      return layers::gelu();
    case 2:
      return layers::relu();
    default:
      return layers::silu();
  }
}

DecoderBlockOptions block_of(const Settings& settings) {
  DecoderBlockOptions block;
  block.attention.query_key_std = settings.real("query_key_std");
  block.attention.sequence.rotary =
      layers::RotaryPositions::with_base(settings.real("base"), settings.integer("pairs"));
  if (settings.integer("window") > 0) block.attention.sequence.window = settings.integer("window");
  block.mlp.activation = gate_of(settings);
  return block;
}

Layers decoder(const Settings& settings) {
  const Layers blocks{layers::repeat(settings.integer("depth"), decoder_block(block_of(settings)))};
  return concatenated(
      {{layers::dense()}, blocks, {layers::rms_norm(), layers::global_average_pool(), readout()}});
}

}  // namespace

std::vector<NetworkRecipe> decoder_recipes() {
  return {
      {{.name = "decoder",
        .description = "RMS norm, rotary causal softmax attention, gated layers (arXiv:2302.13971), pooled",
        .options = {integer_option("depth", "blocks", 2, 1, 100),
                    integer_option("gate", "gate of the gated layers: 0 SiLU, 1 GELU, 2 ReLU", 0, 0, 2),
                    real_option("query_key_std",
                                "product of the standard deviations of query and key weights", 1, 0, 1e6),
                    real_option("base", "base of the rotary frequencies", 10000, 1, 1e9),
                    integer_option("pairs", "rotary frequencies, base^(-i / pairs)", 4, 1, 65536),
                    integer_option("window", "positions that a position looks back, itself included; 0: all",
                                   0, 0, 1000000000)},
        .example_shape = {64}},
       decoder}};
}

}  // namespace widelimit::models
