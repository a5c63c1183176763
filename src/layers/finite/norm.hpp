#pragma once

#include "layers/finite/normalised_rows.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

CounterpartPointer norm_counterpart(Centring centring, const layers::NormOptions& options);

}  // namespace widelimit::finite
