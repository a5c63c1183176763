#pragma once

#include <memory>
#include <string>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit::finite {
class FiniteCounterpart;
}  // namespace widelimit::finite

/// Layers of a user's own (docs/extending.md). Such a layer works everywhere at once: Gram matrices,
/// inference, printing, law checks. To let it stand in network files, register its kind with
/// register_layer_kind(). Layers of equal kind count as equal only if they share their stage. A counterpart
/// (widelimit/finite/finite_layer.hpp) lets the layer stand in finite networks and be checked against them.
namespace widelimit::layers {

/// A layer that transforms the covariance of a pair as a matrix.
[[nodiscard]] Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage,
                               std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr);

/// A layer that acts entry by entry; it joins plane runs.
[[nodiscard]] Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage,
                              std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr);

}  // namespace widelimit::layers
