#include "cli/gp/gp_output.hpp"

#include <fmt/format.h>

#include <set>

#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

std::vector<std::string> places_of(const std::vector<Network>& networks) {
  if (networks.size() == 1) return {""};
  std::vector<std::string> places;
  std::set<std::string> taken;
  for (const Network& network : networks) {
    std::string name = network.name().empty() ? "network" : visible_text(network.name());
    for (char& c : name)
      if (c == '/') c = '_';
    // No folder of its own: it would be the output folder, or lie outside.
    if (name == "." || name == "..") name = "network";
    std::string unique = name;
    for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}-{}", name, i);
    places.push_back(unique + "/");
  }
  return places;
}

}  // namespace widelimit::cli
