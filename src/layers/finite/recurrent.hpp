#pragma once

#include "widelimit/layers/recurrent.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// h_t = phi(sqrt(w / N) U x_t + sqrt(b) beta + sqrt(r / n) W h_{t-1}) at every position. Parameters are U [N, n], beta
/// [n] unless b is 0, and W [n, n].
CounterpartPointer recurrent_counterpart(const layers::RecurrentOptions& options);

}  // namespace widelimit::finite
