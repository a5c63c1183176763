#pragma once

#include <string_view>
#include <vector>

#include "widelimit/models/named_networks.hpp"

namespace widelimit::models {

/// Checked values of all options of one named network.
class Settings {
 public:
  /// Throws ArgumentError for settings that the network does not have or that are out of range.
  Settings(const NamedNetwork& network, const NetworkSettings& given);

  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] Index integer(std::string_view name) const;

 private:
  NetworkSettings values_;
};

/// How a name becomes layers.
struct NetworkRecipe {
  NamedNetwork description;
  Layers (*layers)(const Settings&);
};

[[nodiscard]] std::vector<NetworkRecipe> fully_connected_recipes();
[[nodiscard]] std::vector<NetworkRecipe> convolutional_recipes();
[[nodiscard]] std::vector<NetworkRecipe> attention_recipes();
[[nodiscard]] std::vector<NetworkRecipe> sequence_recipes();
[[nodiscard]] std::vector<NetworkRecipe> decoder_recipes();
[[nodiscard]] std::vector<NetworkRecipe> graph_recipes();
[[nodiscard]] std::vector<NetworkRecipe> radial_recipes();

}  // namespace widelimit::models
