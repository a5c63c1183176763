#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit::finite {
class FiniteCounterpart;
}  // namespace widelimit::finite

/// Your own layers (docs/extending.md). Such a layer works everywhere at once: Gram matrices,
/// inference, printing, check_laws(). With a counterpart (widelimit/network/finite_layer.hpp) it can be part of
/// finite networks and be checked against them.
///
/// `kind` must not be one of the library's (ArgumentError). To use a layer in network files, register
/// its kind with register_layer_kind() and pass the parameters that its reader reads, a JSON object, {} if
/// it has none. Layers of equal kind and parameters count as equal; without parameters, which prints and
/// files then lack, only if they share their stage.
namespace widelimit::layers {

/// A layer that transforms the covariance of a pair as a matrix. ArgumentError for a null stage, an empty or built-in
/// kind, and parameters that are not an object or have a member "layer".
[[nodiscard]] Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage,
                               std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr);
[[nodiscard]] Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage,
                               std::shared_ptr<const finite::FiniteCounterpart> counterpart,
                               const nlohmann::ordered_json& parameters);

/// A layer that acts entry by entry and therefore joins runs of such layers; errors as pair_layer().
[[nodiscard]] Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage,
                              std::shared_ptr<const finite::FiniteCounterpart> counterpart = nullptr);
[[nodiscard]] Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage,
                              std::shared_ptr<const finite::FiniteCounterpart> counterpart,
                              const nlohmann::ordered_json& parameters);

}  // namespace widelimit::layers
