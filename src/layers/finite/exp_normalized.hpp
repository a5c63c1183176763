#pragma once

#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// y = r exp(sqrt(gamma) x / r + gamma (shift - 1) / 2) position by position, r^2 the mean of x^2 over channels.
CounterpartPointer exp_normalized_counterpart(double gamma, double shift);

}  // namespace widelimit::finite
