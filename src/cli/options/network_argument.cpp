#include "cli/options/network_argument.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

double number_from(const std::string& argument, const std::string& text) {
  const auto value = whole_text_number(text);
  if (!value)
    throw ArgumentError(fmt::format("network '{}': expected a number after '=', got '{}'", argument, text));
  return *value;
}

models::NetworkSettings settings_from(const std::string& argument, std::size_t colon) {
  models::NetworkSettings settings;
  if (colon == std::string::npos) return settings;
  std::istringstream items(argument.substr(colon + 1));
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos)
      throw ArgumentError(fmt::format("network '{}': expected OPTION=VALUE, got '{}'", argument, item));
    settings[item.substr(0, equals)] = number_from(argument, item.substr(equals + 1));
  }
  return settings;
}

/// Whether NAME or NAME:OPTION=VALUE,... begins with a name of a named network.
bool is_named(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find(':'));
  return std::ranges::any_of(models::named_networks(), [&](const auto& known) { return known.name == name; });
}

}  // namespace

Network network_from_argument(const std::string& argument, std::size_t axes, std::optional<Index> depth) {
  const bool is_file = argument.ends_with(".json") || argument.find('/') != std::string::npos ||
                       (!is_named(argument) && std::filesystem::is_regular_file(argument));
  if (is_file) {
    if (depth) throw ArgumentError(fmt::format("--depth is for named networks; '{}' is a file", argument));
    return read_network(argument);
  }
  const std::size_t colon = argument.find(':');
  models::NetworkSettings settings = settings_from(argument, colon);
  const std::string name = argument.substr(0, colon);
  if (models::find_named_network(name).has_option("axes"))
    settings.try_emplace("axes", static_cast<double>(axes));
  if (depth) settings.try_emplace("depth", static_cast<double>(*depth));
  return models::named_network(name, settings);
}

}  // namespace widelimit::cli
