#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::python {

/// A nonlinearity from Python functions of arrays: its dual dual(p, q, c) -> E[phi phi] of variances p, q and
/// covariances c, and its derivative's dual or None, without which there is no NTK (an error where one is asked for).
[[nodiscard]] numerics::ActivationPtr activation_from_dual(nanobind::callable nngp,
                                                           std::optional<nanobind::callable> derivative);

/// From phi, a Python function of arrays, and perhaps phi', by quadrature.
[[nodiscard]] numerics::ActivationPtr activation_from_function(nanobind::callable phi,
                                                               std::optional<nanobind::callable> derivative,
                                                               const std::vector<double>& breakpoints);

}  // namespace widelimit::python
