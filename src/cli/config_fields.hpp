#pragma once

#include <string>
#include <vector>

namespace widelimit::cli {

/// One field of a JSON configuration.
struct ConfigField {
  const char* name;
  const char* values;     ///< What it may be, e.g. "integer >= 1".
  const char* otherwise;  ///< Its default; empty if it must be given.
  const char* meaning;
};

using ConfigFields = std::vector<ConfigField>;

[[nodiscard]] ConfigFields joined_fields(const std::vector<ConfigFields>& parts);

/// "  name: values [default], meaning", a line a field: what --help says.
[[nodiscard]] std::string config_fields_help(const ConfigFields& fields);

}  // namespace widelimit::cli
