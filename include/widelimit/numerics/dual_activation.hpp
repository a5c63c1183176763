#pragma once

#include <functional>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics {

/// A nonlinearity of which only the dual is known: dual(p, q, c) gives E[phi phi] and E[phi' phi'] for variances p
/// and q and covariance c, under the laws of Activation. Such a layer has kernels but no finite network: value() and
/// derivative() throw ArgumentError. Called from any thread, entry by entry, in double.
///
/// ArgumentError for an empty function.
[[nodiscard]] ActivationPtr dual_activation(std::function<Dual<double>(double p, double q, double c)> dual);

}  // namespace widelimit::numerics
