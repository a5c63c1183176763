#pragma once

#include <xtensor/xrandom.hpp>

#include "widelimit/widelimit.hpp"

/// Networks and inputs that the benchmarks share.
namespace benchmarks {

using namespace widelimit;

template <typename Scalar>
xt::xarray<Scalar> images(Index count, Index side = 32, Index channels = 3) {
  xt::random::seed(1);
  return xt::random::randn<Scalar>({count, side, side, channels});
}

template <typename Scalar>
xt::xarray<Scalar> vectors(Index count, Index size) {
  xt::random::seed(1);
  return xt::random::randn<Scalar>({count, size});
}

/// depth x (convolution 3x3 + ReLU)
inline Layer convolution_layers(Index depth) {
  return layers::repeat(
      depth, {layers::conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}), layers::relu()});
}

/// Those, a readout, a dense layer.
inline Network convolutions(Index depth, const Layer& readout) {
  return Network({convolution_layers(depth), readout, layers::dense()});
}

/// depth x (dense + ReLU), a dense layer.
inline Network fully_connected(Index depth) {
  return Network(
      {layers::repeat(depth, {layers::dense({.weight_variance = 2, .bias_variance = 0.01}), layers::relu()}),
       layers::dense()});
}

/// 8 convolutions, attention with structured positions, layer norm, flattened.
inline Network struct_network() {
  layers::AttentionOptions attention;
  attention.positions = layers::PositionalEncodings{layers::StructuredPositions{1, 1}, 0.5, 0.5};
  return Network({convolution_layers(8), layers::attention(attention), layers::layer_norm(),
                  layers::flatten(), layers::dense()});
}

}  // namespace benchmarks
