#include "cli/options/network_argument.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/median_distance.hpp"
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

/// A first item without a name is the value of the network's first option, as in matern:1.5.
models::NetworkSettings settings_from(const std::string& argument, std::size_t colon) {
  models::NetworkSettings settings;
  if (colon == std::string::npos) return settings;
  std::istringstream items(argument.substr(colon + 1));
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t equals = item.find('=');
    if (equals != std::string::npos) {
      settings[item.substr(0, equals)] = number_from(argument, item.substr(equals + 1));
    } else if (const auto value = whole_text_number(item); value && settings.empty()) {
      settings[models::find_named_network(argument.substr(0, colon)).options.front().name] = *value;
    } else {
      throw ArgumentError(fmt::format("network '{}': expected OPTION=VALUE, got '{}'", argument, item));
    }
  }
  return settings;
}

/// Whether NAME or NAME:OPTION=VALUE,... begins with a name of a named network.
bool is_named(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find(':'));
  return std::ranges::any_of(models::named_networks(), [&](const auto& known) { return known.name == name; });
}

/// The median distance of inputs, where it is a length that kernels take.
template <typename Scalar>
std::optional<double> length_of(const std::string& argument, const Inputs<Scalar>& x) {
  constexpr double least = 1e-18, most = 1e18;
  const std::optional<double> median = gp::median_distance(x);
  if (median && (*median < least || *median > most))
    throw ArgumentError(fmt::format(
        "network '{}': inputs are {:.2g} from each other, and lengths go from {} to {}: take another unit, "
        "or --preprocess channel",
        argument, *median, least, most));
  return median;
}

/// `length()` is the value of the option of that name, where a named network has it and the argument leaves it out.
Network network_of(const std::string& argument, std::size_t axes, std::optional<Index> depth,
                   const std::function<std::optional<double>()>& length) {
  const bool is_file = argument.ends_with(".json") || argument.find('/') != std::string::npos ||
                       (std::filesystem::is_regular_file(argument) && !is_named(argument));
  if (is_file) {
    if (depth) throw ArgumentError(fmt::format("--depth is for named networks; '{}' is a file", argument));
    return read_network(argument);
  }
  const std::size_t colon = argument.find(':');
  models::NetworkSettings settings = settings_from(argument, colon);
  const std::string name = argument.substr(0, colon);
  const models::NamedNetwork& network = models::find_named_network(name);
  if (network.has_option("axes")) settings.try_emplace("axes", static_cast<double>(axes));
  if (depth) settings.try_emplace("depth", static_cast<double>(*depth));
  if (network.has_option("length") && !settings.contains("length"))
    if (const auto given = length()) settings["length"] = *given;
  return models::named_network(name, settings);
}

}  // namespace

Network network_from_argument(const std::string& argument, std::size_t axes, std::optional<Index> depth) {
  return network_of(argument, axes, depth, [] { return std::optional<double>(); });
}

template <typename Scalar>
Network network_for_inputs(const std::string& argument, const Inputs<Scalar>& x, std::optional<Index> depth) {
  return network_of(argument, x.axes(), depth, [&] { return length_of(argument, x); });
}

template Network network_for_inputs(const std::string&, const Inputs<float>&, std::optional<Index>);
template Network network_for_inputs(const std::string&, const Inputs<double>&, std::optional<Index>);

}  // namespace widelimit::cli
