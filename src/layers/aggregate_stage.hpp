#pragma once

#include <memory>

#include "widelimit/layers/graphs.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// The stage K' = P K P'^T, T' = P T P'^T (docs/theory/graphs.md, section 1) by sparse products. P is that of each
/// input's graph; the state of an input has its node factors.
std::shared_ptr<const PairStage> aggregate_stage(const AggregateOptions& options);

}  // namespace widelimit::layers
