#pragma once

#include <memory>
#include <string>
#include <vector>

namespace widelimit {

class LayerModel;

/// One layer of a network: an immutable value, cheap to copy. Made by the functions in widelimit/layers/.
class Layer {
 public:
  /// For the library's own layers; make your own by widelimit/layers/custom.hpp.
  explicit Layer(std::shared_ptr<const LayerModel> model);

  /// The kind as in network files, e.g. "dense".
  [[nodiscard]] std::string kind() const;

  /// Equal kind and equal parameters.
  friend bool operator==(const Layer& left, const Layer& right);

 private:
  /// For the library: nobody else can complete the type.
  friend const LayerModel& model_of(const Layer& layer);

  std::shared_ptr<const LayerModel> model_;
};

/// Layers applied one after another; empty: the identity.
using Layers = std::vector<Layer>;

}  // namespace widelimit
