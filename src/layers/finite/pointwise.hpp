#pragma once

#include "widelimit/network/finite_layer.hpp"
#include "widelimit/numerics/activation.hpp"

/// Layers that act on every number by itself.
namespace widelimit::finite {

CounterpartPointer activation_counterpart(numerics::ActivationPtr activation);

/// Keeps every number with probability `keep` and divides it by that. Every input and pass has draws of its own.
CounterpartPointer dropout_counterpart(double keep);

}  // namespace widelimit::finite
