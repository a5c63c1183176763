#pragma once

#include <string>

#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::numerics {

/// ArgumentError, which begins with `name`, for a function that computes in less than double: nearly all of its values
/// in [-3, 3] differ, and all are numbers of float. Cost: 512 values.
void require_double_values(const FunctionValues& function, const std::string& name);

}  // namespace widelimit::numerics
