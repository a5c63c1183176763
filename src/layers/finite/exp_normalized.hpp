#pragma once

#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// y = r exp(sqrt(gamma) x / r + gamma (shift - 1) / 2) at every position, where r^2 is the mean of x^2 over the
/// channels.
CounterpartPointer exp_normalized_counterpart(double gamma, double shift);

}  // namespace widelimit::finite
