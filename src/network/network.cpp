#include "widelimit/network/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "network/layer_model.hpp"

namespace widelimit {
namespace {

/// Prints from the JSON form, which needs no input shape, unlike describe().
void print_layers(std::ostream& stream, const nlohmann::ordered_json& layers, std::size_t depth) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    stream << fmt::format("{:{}}{:>3}  {}", "", 4 * depth, i, layers[i]["layer"].get<std::string>());
    for (const auto& [name, value] : layers[i].items())
      if (name != "layer" && name != "layers" && name != "branches")
        stream << fmt::format("  {}={}", name, value.dump());
    stream << '\n';
    if (layers[i].contains("layers")) print_layers(stream, layers[i]["layers"], depth + 1);
    if (!layers[i].contains("branches")) continue;
    for (const auto& branch : layers[i]["branches"]) {
      stream << fmt::format("{:{}}branch", "", 4 * depth + 5);
      for (const auto& [name, value] : branch.items())
        if (name != "layers") stream << fmt::format("  {}={}", name, value.dump());
      stream << '\n';
      print_layers(stream, branch["layers"], depth + 2);
    }
  }
}

}  // namespace

std::string Network::describe(const Shape& input) const {
  const auto lines = Lowering::trace(*this, input);
  std::size_t width = 0;
  for (const TraceLine& line : lines) width = std::max(width, to_string(line.shape).size());
  std::string text = fmt::format("{}  input {}\n", name_.empty() ? "network" : name_, to_string(input));
  for (const TraceLine& line : lines)
    text += fmt::format("  {:<{}}{:{}}{}\n", to_string(line.shape), width, "", 2 * line.depth + 2, line.text);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Network& network) {
  stream << (network.name().empty() ? "network" : network.name()) << '\n';
  print_layers(stream, to_json(network.layers()), 0);
  return stream;
}

}  // namespace widelimit
