#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit::finite {
class FiniteCounterpart;
}  // namespace widelimit::finite

/// Layers of a user's own (docs/extending.md). Such a layer works everywhere at once: Gram matrices,
/// inference, printing, law checks. A counterpart (widelimit/finite/finite_layer.hpp) lets the layer stand in
/// finite networks and be checked against them.
///
/// `kind` must not be one of the library's (ArgumentError). To let a layer stand in network files, register
/// its kind with register_layer_kind() and pass the parameters that its reader reads, a JSON object, {} where
/// it has none. Layers of equal kind and parameters count as equal; without parameters, which prints and
/// files then lack, only if they share their stage.
namespace widelimit::layers {

/// A layer that transforms the covariance of a pair as a matrix.
[[nodiscard]] Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage,
                               std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr,
                               std::optional<nlohmann::ordered_json> parameters = std::nullopt);

/// A layer that acts entry by entry; it joins plane runs.
[[nodiscard]] Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage,
                              std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr,
                              std::optional<nlohmann::ordered_json> parameters = std::nullopt);

}  // namespace widelimit::layers
