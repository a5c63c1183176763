#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct NetworksArguments {
  std::string network;
  std::optional<Index> depth;
  std::vector<Index> size;
  bool json = false;
};

std::string networks_text() {
  std::string text;
  for (const models::NamedNetwork& network : models::named_networks()) {
    fmt::format_to(std::back_inserter(text), "{}\n  {}\n", network.name, network.description);
    for (const models::NetworkOption& option : network.options)
      fmt::format_to(std::back_inserter(text), "    {:<16} {} [{}; {} to {}]\n", option.name,
                     option.description, option.default_value, option.smallest, option.largest);
  }
  return text;
}

std::string networks_json() {
  auto all = nlohmann::ordered_json::array();
  for (const models::NamedNetwork& network : models::named_networks()) {
    auto options = nlohmann::ordered_json::array();
    for (const models::NetworkOption& option : network.options)
      options.push_back({{"name", option.name},
                         {"description", option.description},
                         {"default", option.default_value},
                         {"smallest", option.smallest},
                         {"largest", option.largest}});
    all.push_back({{"name", network.name}, {"description", network.description}, {"options", options}});
  }
  return all.dump(1) + "\n";
}

/// Sizes of inputs for a network as the user writes it: its own if it has a name, else those of an image.
Shape example_shape(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find(':'));
  for (const models::NamedNetwork& network : models::named_networks())
    if (network.name == name) return network.example_shape;
  return {32, 32};
}

void run(const NetworksArguments& arguments) {
  if (arguments.network.empty()) {
    return arguments.json ? print_document(networks_json()) : print_text(stdout, networks_text());
  }
  const Shape size = arguments.size.empty() ? example_shape(arguments.network) : arguments.size;
  const Network network = network_from_argument(arguments.network, size.size(), arguments.depth);
  if (arguments.json) return print_document(to_json(network) + "\n");
  print_text(stdout, naming_errors(arguments.network, [&] { return network.describe(size); }));
}

void fill_networks_command(CLI::App& command, const RunContext& /*context*/) {
  auto arguments = std::make_shared<NetworksArguments>();
  add_value(command, "network", arguments->network, network_argument_help, "NETWORK");
  add_value(command, "--depth", arguments->depth, "The network's option depth", whole_number<Index>(0), "D");
  add_value(command, "--size", arguments->size,
            "Spatial sizes of the inputs, one an axis; named networks take inputs of as many axes "
            "[32,32; imdb-... 200]",
            whole_number<Index>(1), "S,...")
      ->delimiter(',');
  command.add_flag("--json", arguments->json,
                   "Write the network file, or the list of all networks as JSON, to standard output");
  command.footer(
      "Examples:\n"
      "  widelimit networks\n"
      "  widelimit networks struct --depth 4 --size 8,8\n"
      "  widelimit networks resnet:depth=2,groups=3 --json > resnet.json");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace

const Command networks_command{"networks", "Lists the named networks; prints one, or writes its file",
                               fill_networks_command};

}  // namespace widelimit::cli
