#pragma once

#include <optional>

#include "widelimit/layers/parametrisation.hpp"
#include "widelimit/network/layer.hpp"

namespace widelimit::layers {

/// Variances of the weights and biases of dense().
struct DenseOptions {
  /// sigma_w^2 >= 0 of the standard normal parametrisation, w = sigma_w / sqrt(fan_in) z.
  double weight_variance = 1;
  double bias_variance = 0;  ///< sigma_b^2 >= 0.
  /// Absent: standard normal parametrisation.
  std::optional<StandardParametrisation> standard = {};
  Trainable trainable = Trainable::all;
};

/// Fully connected layer, applied at every position: K' = w K + b, T' = K' + w T. Throws ArgumentError for
/// variances that are negative or not finite, and widths out of range.
///
/// Source  Lee et al. 2018 (arXiv:1711.00165), Jacot et al. 2018 (arXiv:1806.07572); docs/theory/kernel-recursion.md.
[[nodiscard]] Layer dense(const DenseOptions& options = {});

}  // namespace widelimit::layers
