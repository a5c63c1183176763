#pragma once

#include "widelimit/network/finite_layer.hpp"
#include "widelimit/network/window.hpp"

/// Layers that put positions together.
namespace widelimit::finite {

enum class PoolWeight { mean, sum };

/// Mean or sum over windows; padded positions count as zeros. Its make_*() throw ArgumentError if the window does not
/// fit.
CounterpartPointer pooling_counterpart(const Window& window, PoolWeight weight);

/// Mean or sum over all positions. Its make_*() throw ArgumentError if there are none.
CounterpartPointer global_pooling_counterpart(PoolWeight weight);

/// All positions side by side. Its make_*() throw ArgumentError if there are none.
CounterpartPointer flatten_counterpart();

}  // namespace widelimit::finite
