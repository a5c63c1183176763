#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "network/lowering.hpp"

namespace widelimit::finite {
class FiniteCounterpart;
}  // namespace widelimit::finite

namespace widelimit {

/// The size of a layer: how many layers it is with repeats written out, and how deep they are nested.
struct LayerExtent {
  double layers = 1;
  Index depth = 1;
};

/// Larger networks are mistakes. Lowering them would take minutes, or overflow the stack by its recursion. Lowering
/// also needs fewer than 64 levels of branches, one for each bit of LoweredState::independent.
inline constexpr double most_layers = 100'000;
inline constexpr Index deepest_layers = 60;

/// What a layer is to the library: a kind with fields, and how it writes itself into the graph. Every layer of
/// src/layers implements this class; Layer is the value that users hold.
class LayerModel {
 public:
  virtual ~LayerModel() = default;

  /// The kind as network files write it.
  [[nodiscard]] virtual std::string kind() const = 0;

  /// All fields but "layer", in the order of the format, defaults written out.
  [[nodiscard]] virtual nlohmann::ordered_json fields() const = 0;

  /// Throws NetworkError, naming `path`, unless fields() can be read back from a file. That fails for a user's layer
  /// or function without parameters or without a reader.
  virtual void check_writable(const std::string& /*path*/) const {}

  /// Layers that hold other layers override this and count them.
  [[nodiscard]] virtual LayerExtent extent() const { return {}; }

  /// Appends the layer's operations after `input`; rejects what may not stand there (Lowering::reject).
  [[nodiscard]] virtual LoweredState lower(Lowering& lowering, const LoweredState& input) const = 0;

  /// The layer at finite width (widelimit/network/finite_layer.hpp). Null for layers made of layers, which finite
  /// networks take apart (layers/layer_parts.hpp), and for a user's layer that was given none.
  [[nodiscard]] virtual std::shared_ptr<const finite::FiniteCounterpart> finite_counterpart() const = 0;
};

/// The model that a layer holds; never null.
[[nodiscard]] inline const LayerModel& model_of(const Layer& layer) { return *layer.model_; }

/// Checks every layer; for the path "layers" they are named "layers[0]", "layers[1]" and so on.
void check_writable(const Layers& layers, const std::string& path);

/// The JSON object of a layer: {"layer": kind, fields...}.
nlohmann::ordered_json to_json(const Layer& layer);

/// A JSON array of layers.
nlohmann::ordered_json to_json(const Layers& layers);

}  // namespace widelimit
