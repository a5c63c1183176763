#pragma once

#include <optional>

#include "widelimit/layers/parametrisation.hpp"
#include "widelimit/network/finite_layer.hpp"
#include "widelimit/network/window.hpp"

/// Layers that are one affine map: dense, convolution, local convolution.
namespace widelimit::finite {

struct AffineVariances {
  double weight;
  double bias;
  std::optional<layers::StandardParametrisation> standard = {};
  layers::Trainable trainable = layers::Trainable::all;

  [[nodiscard]] bool trains(layers::Trainable part) const {
    return trainable == layers::Trainable::all || trainable == part;
  }
};

/// z = weight_scale x W + bias_scale beta, where W and beta begin as standard normal numbers times their deviations.
/// In the NTK parametrisation deviations are 1 and the scales carry the variances; in the standard one it is the
/// other way round.
struct AffineScales {
  double weight_scale;
  double weight_deviation = 1;
  double bias_scale = 0;  ///< 0 if there are no biases.
  double bias_deviation = 1;
  bool trains_weights = true, trains_biases = true;  ///< What has no gradients if not.
};

/// The scales for weights that see `channels` channels at `positions` positions.
AffineScales affine_scales(const AffineVariances& variances, Index channels, Index positions = 1);

CounterpartPointer dense_counterpart(const AffineVariances& variances);

/// Its make_*() throw ArgumentError if the window does not fit.
CounterpartPointer convolution_counterpart(const Window& window, const AffineVariances& variances,
                                           Sharing sharing);

}  // namespace widelimit::finite
