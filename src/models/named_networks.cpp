#include "widelimit/models/named_networks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "models/settings.hpp"
#include "widelimit/error.hpp"

namespace widelimit::models {
namespace {

/// The recipes of a family, which are made when one of them is looked for.
template <std::vector<NetworkRecipe> (*make)()>
const std::vector<NetworkRecipe>& recipes_of() {
  static const std::vector<NetworkRecipe> recipes = make();
  return recipes;
}

/// All families, in the order of the list.
constexpr const std::vector<NetworkRecipe>& (*families[])() = {
    recipes_of<fully_connected_recipes>, recipes_of<convolutional_recipes>, recipes_of<attention_recipes>,
    recipes_of<sequence_recipes>,        recipes_of<decoder_recipes>,       recipes_of<graph_recipes>,
    recipes_of<radial_recipes>};

template <typename Range>
std::vector<std::string> names_of(const Range& range) {
  std::vector<std::string> names;
  names.reserve(range.size());
  for (const auto& item : range) names.push_back(item.name);
  return names;
}

const NetworkRecipe& find_recipe(std::string_view name) {
  for (const auto family : families)
    for (const NetworkRecipe& recipe : family())
      if (recipe.description.name == name) return recipe;
  throw ArgumentError(
      fmt::format("unknown network '{}'; known are {}", name, fmt::join(names_of(named_networks()), ", ")));
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
    for (const auto family : families)
      for (const NetworkRecipe& recipe : family()) list.push_back(recipe.description);
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
