#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "network/lowering.hpp"

namespace widelimit {

/// What a layer is to the library: a kind with fields, and how it writes itself into the graph.
class LayerModel {
 public:
  virtual ~LayerModel() = default;

  /// The kind as network files write it.
  [[nodiscard]] virtual std::string kind() const = 0;

  /// All fields but "layer", in the order of the format, defaults written out.
  [[nodiscard]] virtual nlohmann::ordered_json fields() const = 0;

  /// Appends the layer's operations behind `input`; rejects what may not stand there (Lowering::reject).
  [[nodiscard]] virtual State lower(Lowering& lowering, const State& input) const = 0;
};

/// The JSON object of a layer: {"layer": kind, fields...}.
nlohmann::ordered_json to_json(const Layer& layer);

/// A JSON array of layers.
nlohmann::ordered_json to_json(const Layers& layers);

}  // namespace widelimit
