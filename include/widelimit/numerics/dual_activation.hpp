#pragma once

#include <functional>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics {

/// A nonlinearity given by its dual alone: dual(p, q, c) gives E[phi phi] and E[phi' phi'] for variances p
/// and q and covariance c, with the properties of Activation. Such a layer has kernels but no finite network: value()
/// and derivative() throw ArgumentError. It is called from any thread, entry by entry, in double.
///
/// ArgumentError for an empty function.
[[nodiscard]] ActivationPtr dual_activation(std::function<Dual<double>(double p, double q, double c)> dual);

}  // namespace widelimit::numerics
