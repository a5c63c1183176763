#pragma once

#include <string>
#include <vector>

#include "shared_function.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::python {

/// A nonlinearity from Python functions of arrays: its dual dual(p, q, c) -> E[phi phi] of variances p, q and
/// covariances c, and its derivative's dual or null, without which there is no NTK (an error where one is asked for).
[[nodiscard]] numerics::ActivationPtr activation_from_dual(const HeldFunction& nngp,
                                                           const HeldFunction* derivative,
                                                           const HeldFunction* slopes);

/// From phi, a Python function of arrays, and perhaps phi', by quadrature. Errors begin with `kind`.
[[nodiscard]] numerics::ActivationPtr activation_from_function(const std::string& kind,
                                                               const HeldFunction& phi,
                                                               const HeldFunction* derivative,
                                                               const std::vector<double>& breakpoints);

}  // namespace widelimit::python
