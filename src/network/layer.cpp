#include "widelimit/network/layer.hpp"

#include <fmt/format.h>

#include "network/layer_model.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

Layer::Layer(std::shared_ptr<const LayerModel> model) : model_{std::move(model)} {
  if (!model_) throw ArgumentError("Layer: expected a layer model, got a null pointer");
}

std::string Layer::kind() const { return model_->kind(); }

bool operator==(const Layer& left, const Layer& right) {
  // Layers made apart are equal if files would write them alike.
  return left.model_ == right.model_ ||
         (left.kind() == right.kind() && left.model_->fields() == right.model_->fields());
}

void check_writable(const Layers& layers, const std::string& path) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    model_of(layers[i]).check_writable(fmt::format("{}[{}]", path, i));
}

nlohmann::ordered_json to_json(const Layer& layer) {
  nlohmann::ordered_json object;
  object["layer"] = layer.kind();
  object.update(model_of(layer).fields());
  return object;
}

nlohmann::ordered_json to_json(const Layers& layers) {
  auto array = nlohmann::ordered_json::array();
  for (const Layer& layer : layers) array.push_back(to_json(layer));
  return array;
}

}  // namespace widelimit
