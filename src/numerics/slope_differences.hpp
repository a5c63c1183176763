#pragma once

#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics {

/// Activation::slopes() from dual() alone. Differences are extrapolated to step 0 (Richardson; the step of least
/// estimated error: Ridders, Advances in Engineering Software 4, 1982), central ones within the range c^2 <= pq and,
/// near its ends, one-sided ones too. What does not settle counts as infinite, and so as 0.
[[nodiscard]] DualSlopes slopes_by_differences(const Activation& activation, double p, double q, double c);

/// Activation::self_slopes() likewise.
[[nodiscard]] SelfSlopes self_slopes_by_differences(const Activation& activation, double p);

}  // namespace widelimit::numerics
