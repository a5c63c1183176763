#pragma once

#include <string_view>

#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// ArgumentError if the model attends with a causal mask.
void require_full_attention(std::string_view where, const SdeModel& model);

/// ArgumentError unless a half step of the ReLU drift keeps the cone: it mixes V with a kernel of weight
/// step relu_drift (c_+ - c_-)^2 / 8, which must not exceed 1.
void require_step_size(std::string_view where, const SdeModel& model, double step);

}  // namespace widelimit::covariance_sde
