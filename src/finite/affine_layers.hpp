#pragma once

#include <memory>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/window.hpp"

/// Layers that are one affine map: dense, convolution, local convolution.
namespace widelimit::finite {

struct AffineVariances {
  double weight;
  double bias;
};

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_dense(const Site& site, const AffineVariances& variances);

/// Throws ArgumentError if the window does not fit.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_convolution(const Site& site, const Window& window,
                                                      const AffineVariances& variances, Sharing sharing);

}  // namespace widelimit::finite
