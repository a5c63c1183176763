#pragma once

#include <optional>
#include <vector>

#include "widelimit/layers/parametrisation.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/window.hpp"

namespace widelimit::layers {

/// The window of a convolution, and the variances of its weights and biases.
struct ConvolutionOptions {
  std::vector<Index> filter;        ///< One size >= 1 for each axis; 1, 2 or 3 axes.
  std::vector<Index> strides = {};  ///< One stride >= 1 for each axis; empty: all 1.
  Padding padding = Padding::same;
  /// sigma_w^2 >= 0; the fan-in is channels times filter positions, padded ones included.
  double weight_variance = 1;
  double bias_variance = 0;  ///< sigma_b^2 >= 0.
  /// Absent: standard normal parametrisation.
  std::optional<StandardParametrisation> standard = {};
  /// Zeros around the inputs, in place of `padding`: one number >= 0 for each axis, on either side of it, as PyTorch
  /// has them; or two, those before all axes and then those behind. Empty: as `padding` says.
  std::vector<Index> pads = {};
  /// Distance >= 1 of the filter's positions along each axis; empty: all 1.
  std::vector<Index> dilations = {};
  Trainable trainable = Trainable::all;
};

/// Convolution with shared weights: K'[a, b] = (w / |F|) sum_o K[s a + o, s b + o] + b, with dilations d at s a + d o.
/// Throws ArgumentError for bad options; lowering rejects inputs with another number of axes or smaller than a valid
/// filter. Pads other than those of `same`, and dilations, cost as a map of positions.
/// Source  Novak et al. 2019 (arXiv:1810.05148), Garriga-Alonso et al. 2019 (arXiv:1808.05587).
[[nodiscard]] Layer conv(const ConvolutionOptions& options);

/// Convolution with its own weights at every position: entries of different output positions vanish. Errors as
/// conv().
/// Source  Novak et al. 2019, section 3.
[[nodiscard]] Layer local_conv(const ConvolutionOptions& options);

/// Transposed convolution: every input position a adds its filter to the output positions s a + o, so that sizes grow
/// by the strides. K' is the convolution of K with positions moved apart by the strides and zeros between them; the
/// divisor of the weights' variance is the whole filter. Borders as in jax.lax.conv_transpose, with `circular` the
/// transpose of conv(). Has neither pads nor dilations. Errors as conv().
/// Source  Dumoulin and Visin 2016 (arXiv:1603.07285), chapter 4.
[[nodiscard]] Layer conv_transpose(const ConvolutionOptions& options);

}  // namespace widelimit::layers
