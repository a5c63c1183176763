#pragma once

#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// The axes over which a norm averages.
enum class NormAxes { channels, channels_and_space };

/// Options of layer_norm() and rms_norm().
struct NormOptions {
  NormAxes axes = NormAxes::channels;
  double epsilon = 1e-12;  ///< >= 0, added to the variance.
  /// With NormAxes::channels: spatial axes (0 the first), each once, over which the norm averages as well.
  std::vector<Index> spatial_axes = {};
};

/// Layer norm: subtracts the mean and divides by the standard deviation, over channels or over channels and
/// positions along some or all spatial axes. K' = K / sqrt((p + eps) (q + eps)) and the same factor on T, where p and q
/// are the variances of the two positions or their means over such positions (with masks, over those that count). Needs
/// Gaussian channels, or raw inputs, where the mean is removed exactly. ArgumentError for an epsilon that is negative
/// or not finite, and for bad axes; NetworkError for inputs without such an axis.
///
/// Source  docs/theory/kernel-recursion.md, section 2.3.
[[nodiscard]] Layer layer_norm(const NormOptions& options = {});

/// The same without removing the mean; it may follow anything. Errors as layer_norm().
[[nodiscard]] Layer rms_norm(const NormOptions& options = {});

}  // namespace widelimit::layers
