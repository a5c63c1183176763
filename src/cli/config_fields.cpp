#include "cli/config_fields.hpp"

#include <fmt/format.h>

#include <iterator>

namespace widelimit::cli {

ConfigFields joined_fields(const std::vector<ConfigFields>& parts) {
  ConfigFields all;
  for (const ConfigFields& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string config_fields_help(const ConfigFields& fields) {
  std::string text = "Configuration (fields without a default must be given):\n";
  for (const ConfigField& field : fields)
    fmt::format_to(std::back_inserter(text), "  {}: {}{}; {}\n", field.name, field.values,
                   *field.otherwise == 0 ? "" : fmt::format(" [{}]", field.otherwise), field.meaning);
  return text;
}

}  // namespace widelimit::cli
