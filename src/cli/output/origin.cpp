#include "cli/output/origin.hpp"

#include <fmt/format.h>

#include "widelimit/version.hpp"

namespace widelimit::cli {

nlohmann::ordered_json origin_json(const Origin& origin) {
  nlohmann::ordered_json json{
      {"widelimit", version}, {"command", origin.command}, {"configuration", origin.configuration}};
  if (origin.seed) json["seed"] = *origin.seed;
  return json;
}

std::string origin_comment(const Origin& origin) {
  std::string text = fmt::format("# widelimit {}, {}\n# configuration: {}\n", version, origin.command,
                                 origin.configuration.dump());
  if (origin.seed) text += fmt::format("# seed: {}\n", *origin.seed);
  return text;
}

}  // namespace widelimit::cli
