#include "widelimit/network/network_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "network/layer_model.hpp"
#include "network/network_number.hpp"
#include "network/registry.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

struct NetworkNumbers::Places {
  Network network;
  /// The network as in its file, with null in the place of layers that no path leads to. Such layers are never
  /// written or read, so they may be layers that files cannot hold.
  nlohmann::json document;
  std::set<std::size_t> layers;  ///< The layers that paths lead to.
  std::vector<NetworkNumber> numbers;
};

namespace {

/// The layer that a path leads into: 3 for "layers[3].weight_variance". Nothing for other paths and layers that do
/// not exist, which NetworkNumber reports.
std::optional<std::size_t> layer_of(const std::string& path, std::size_t count) {
  constexpr std::string_view front = "layers[";
  if (!path.starts_with(front)) return std::nullopt;
  std::size_t layer = count;
  const char* end = path.data() + path.size();
  const auto read = std::from_chars(path.data() + front.size(), end, layer);
  if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ']' || layer >= count) return std::nullopt;
  return layer;
}

}  // namespace

NetworkNumbers::NetworkNumbers(const Network& network, const std::vector<std::string>& paths,
                               IntegerNumbers integers) {
  auto places = std::make_shared<Places>(Places{network, {{"layers", nlohmann::json::array()}}, {}, {}});
  nlohmann::json& layers = places->document["layers"];
  for (std::size_t i = 0; i < network.layers().size(); ++i) layers.push_back(nullptr);
  for (const std::string& path : paths)
    if (const auto layer = layer_of(path, network.layers().size())) places->layers.insert(*layer);
  for (const std::size_t layer : places->layers) {
    model_of(network.layers()[layer]).check_writable(fmt::format("layers[{}]", layer));
    layers[layer] = nlohmann::json(to_json(Layers{network.layers()[layer]})).front();
    // What cannot be read again, whatever its numbers are, is told before numbers are tried.
    static_cast<void>(read_layer(layers[layer], fmt::format("layers[{}]", layer)));
  }
  for (const std::string& path : paths) {
    const NetworkNumber number(places->document, path, fmt::format("'{}'", path));
    if (number.is_integer() && integers == IntegerNumbers::refused)
      throw ArgumentError(
          fmt::format("'{}': the network has an integer there, which cannot change continuously", path));
    if (std::find(places->numbers.begin(), places->numbers.end(), number) != places->numbers.end())
      throw ArgumentError(fmt::format("'{}': this number is named twice", path));
    places->numbers.push_back(number);
    values_.push_back(number.in(places->document));
  }
  places_ = std::move(places);
}

bool NetworkNumbers::is_integer(std::size_t number) const {
  if (number >= values_.size())
    throw ArgumentError(fmt::format("NetworkNumbers::is_integer: expected one of {} numbers, got number {}",
                                    values_.size(), number));
  return places_->numbers[number].is_integer();
}

Network NetworkNumbers::with(const std::vector<double>& values) const {
  if (values.size() != values_.size())
    throw ArgumentError(
        fmt::format("NetworkNumbers::with: expected {} values, got {}", values_.size(), values.size()));
  const nlohmann::json document = with_values(places_->document, places_->numbers, values);
  Layers layers = places_->network.layers();
  for (const std::size_t layer : places_->layers)
    layers[layer] = read_layer(document.at("layers").at(layer), fmt::format("layers[{}]", layer));
  return {places_->network.name(), std::move(layers)};
}

}  // namespace widelimit
