#include "widelimit/models/named_networks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "models/settings.hpp"
#include "widelimit/error.hpp"

namespace widelimit::models {
namespace {

const std::vector<NetworkRecipe>& recipes() {
  static const std::vector<NetworkRecipe> all = [] {
    std::vector<NetworkRecipe> list;
    for (auto&& part : {fully_connected_recipes(), convolutional_recipes(), attention_recipes(),
                        sequence_recipes(), decoder_recipes(), graph_recipes(), radial_recipes()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

template <typename Range>
std::vector<std::string> names_of(const Range& range) {
  std::vector<std::string> names;
  names.reserve(range.size());
  for (const auto& item : range) names.push_back(item.name);
  return names;
}

const NetworkRecipe& find_recipe(std::string_view name) {
  const auto found = std::find_if(recipes().begin(), recipes().end(), [&](const NetworkRecipe& recipe) {
    return recipe.description.name == name;
  });
  if (found == recipes().end())
    throw ArgumentError(
        fmt::format("unknown network '{}'; known are {}", name, fmt::join(names_of(named_networks()), ", ")));
  return *found;
}

void check_range(const NamedNetwork& network, const NetworkOption& option, double value) {
  const bool integers = option.values == NetworkOption::Values::integers;
  if (value >= option.smallest && value <= option.largest && (!integers || std::floor(value) == value))
    return;
  throw ArgumentError(fmt::format("network '{}': {} must be {} from {} to {}, got {}", network.name,
                                  option.name, integers ? "an integer" : "a number", option.smallest,
                                  option.largest, value));
}

}  // namespace

Settings::Settings(const NamedNetwork& network, const NetworkSettings& given) {
  for (const NetworkOption& option : network.options) values_[option.name] = option.default_value;
  for (const auto& [name, value] : given) {
    const auto option =
        std::find_if(network.options.begin(), network.options.end(),
                     [&name = name](const NetworkOption& known) { return known.name == name; });
    if (option == network.options.end())
      throw ArgumentError(fmt::format("network '{}' has no option '{}'; it has {}", network.name, name,
                                      fmt::join(names_of(network.options), ", ")));
    check_range(network, *option, value);
    values_[name] = value;
  }
}

double Settings::real(std::string_view name) const { return values_.find(name)->second; }

Index Settings::integer(std::string_view name) const { return static_cast<Index>(real(name)); }

bool NamedNetwork::has_option(std::string_view option) const {
  return std::any_of(options.begin(), options.end(),
                     [option](const NetworkOption& known) { return known.name == option; });
}

const std::vector<NamedNetwork>& named_networks() {
  static const std::vector<NamedNetwork> all = [] {
    std::vector<NamedNetwork> list;
    std::transform(recipes().begin(), recipes().end(), std::back_inserter(list),
                   [](const NetworkRecipe& recipe) { return recipe.description; });
    return list;
  }();
  return all;
}

const NamedNetwork& find_named_network(std::string_view name) { return find_recipe(name).description; }

Network named_network(std::string_view name, const NetworkSettings& settings) {
  const NetworkRecipe& recipe = find_recipe(name);
  return {std::string(name), recipe.layers(Settings(recipe.description, settings))};
}

}  // namespace widelimit::models
