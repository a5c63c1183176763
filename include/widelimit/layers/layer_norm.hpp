#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::layers {

/// What a norm averages over.
enum class NormAxes { channels, channels_and_space };

struct NormOptions {
  NormAxes axes = NormAxes::channels;
  double epsilon = 1e-12;  ///< >= 0, added to the variance.
};

/// Layer norm: subtracts the mean and divides by the standard deviation, over channels or over channels and
/// positions. K' = K / sqrt((p + eps) (q + eps)) and the same factor on T, p and q the variances of the two
/// positions or their means over positions. Needs Gaussian channels, or raw inputs, where the mean is removed
/// exactly. ArgumentError for an epsilon that is negative or not finite.
///
/// Source  docs/theory/kernel-recursion.md, section 2.3.
[[nodiscard]] Layer layer_norm(const NormOptions& options = {});

/// The same without removing the mean; stands behind anything. Errors as layer_norm().
[[nodiscard]] Layer rms_norm(const NormOptions& options = {});

}  // namespace widelimit::layers
