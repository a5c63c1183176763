#pragma once

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/window.hpp"

/// Layers that are one affine map: dense, convolution, local convolution.
namespace widelimit::finite {

struct AffineVariances {
  double weight;
  double bias;
};

CounterpartPointer dense_counterpart(const AffineVariances& variances);

/// make_*() throws ArgumentError if the window does not fit.
CounterpartPointer convolution_counterpart(const Window& window, const AffineVariances& variances,
                                           Sharing sharing);

}  // namespace widelimit::finite
