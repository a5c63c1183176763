#pragma once

#include <memory>

#include "widelimit/layers/graphs.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// K' = P K P'^T by sparse products, the rows first. An input's state holds its node factors.
std::shared_ptr<const PairStage> aggregate_stage(const AggregateOptions& options);

}  // namespace widelimit::layers
