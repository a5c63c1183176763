#pragma once

#include "numerics/arguments.hpp"
#include "widelimit/covariance_sde/checks.hpp"

/// Argument checks of this folder.
namespace widelimit::covariance_sde {

using numerics::require_at_least;
using numerics::require_at_most;
using numerics::require_finite;
using numerics::require_index;
using numerics::require_not_negative;
using numerics::require_positive;
using numerics::require_shape;

}  // namespace widelimit::covariance_sde
