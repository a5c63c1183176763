#pragma once

#include <string_view>

#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// ArgumentError if the model attends with a causal mask.
void require_full_attention(std::string_view where, const SdeModel& model);

}  // namespace widelimit::covariance_sde
