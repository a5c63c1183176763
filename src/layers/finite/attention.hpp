#pragma once

#include "widelimit/layers/attention.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// Multi-head self-attention. Its make_*() throw ArgumentError for inputs without positions, and for encodings that
/// do not fit.
CounterpartPointer attention_counterpart(const layers::AttentionOptions& options);

}  // namespace widelimit::finite
