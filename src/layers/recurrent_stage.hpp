#pragma once

#include <memory>

#include "widelimit/layers/recurrent.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// The covariances of a recurrent layer (docs/theory/recurrent.md).
[[nodiscard]] std::shared_ptr<const PairStage> recurrent_stage(const RecurrentOptions& options);

}  // namespace widelimit::layers
