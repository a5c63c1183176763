#pragma once

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::finite {

/// Multi-head self-attention. make_*() throws ArgumentError for inputs without positions or encodings that do
/// not fit.
CounterpartPointer attention_counterpart(const layers::AttentionOptions& options);

}  // namespace widelimit::finite
