#pragma once

#include "widelimit/layers/graphs.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::finite {

/// y = P x on the graph of each input. Passes throw ArgumentError for graphs that aggregate() cannot take. Its
/// make_*() throw ArgumentError for inputs that do not have one axis.
CounterpartPointer aggregate_counterpart(const layers::AggregateOptions& options);

}  // namespace widelimit::finite
