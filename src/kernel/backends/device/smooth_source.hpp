#pragma once

#include <string>

#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// The OpenCL function
///
///     real2 smooth_dual(global const real* table, real p, real q, real c)
///
/// which is E[phi(u) phi(v)] and E[phi'(u) phi'(v)] of a nonlinearity whose dual comes by quadrature, for any p, q and
/// c, from its SmoothTable. It has the arithmetic of numerics::QuadratureActivation: a short Hermite series, a deep one
/// where that does not converge, and nested rules elsewhere; in the precision of the device throughout.
[[nodiscard]] std::string smooth_source(numerics::formula::Precision precision);

}  // namespace widelimit
