#pragma once

#include "widelimit/results/experiment.hpp"

namespace widelimit::covariance_sde {

/// The experiments of `widelimit sde`, with the fields of command_fields(); each writes a folder.
[[nodiscard]] const results::Theory& experiments();

}  // namespace widelimit::covariance_sde
