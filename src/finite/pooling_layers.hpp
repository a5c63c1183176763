#pragma once

#include <memory>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/window.hpp"

/// Layers that put positions together.
namespace widelimit::finite {

enum class PoolWeight { mean, sum };

/// Mean or sum over windows; padded positions count as zeros. Throws ArgumentError if the window does not
/// fit.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_pooling(const Site& site, const Window& window, PoolWeight weight);

/// Mean or sum over all positions. Throws ArgumentError if there are none.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_global_pooling(const Site& site, PoolWeight weight);

/// All positions side by side. Throws ArgumentError if there are none.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_flatten(const Site& site);

}  // namespace widelimit::finite
