#pragma once

#include "layers/finite/normalised_rows.hpp"
#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/layer_norm.hpp"

namespace widelimit::finite {

CounterpartPointer norm_counterpart(Centring centring, const layers::NormOptions& options);

}  // namespace widelimit::finite
