#pragma once

#include <memory>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/numerics/activation.hpp"

/// Layers that act on every number by itself.
namespace widelimit::finite {

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_activation(const Site& site, numerics::ActivationPtr activation);

/// Keeps every number with probability `keep`, divided by it; drawn anew for every input and pass.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_dropout(const Site& site, double keep);

}  // namespace widelimit::finite
