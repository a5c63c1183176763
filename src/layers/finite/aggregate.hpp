#pragma once

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/graphs.hpp"

namespace widelimit::finite {

/// y = P x on the graph of each input. Passes throw ArgumentError for graphs that aggregate() cannot take; make_*()
/// throws it for inputs that do not have one axis.
CounterpartPointer aggregate_counterpart(const layers::AggregateOptions& options);

}  // namespace widelimit::finite
