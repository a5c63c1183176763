#pragma once

#include <nlohmann/json.hpp>

#include "widelimit/fields/config_fields.hpp"
#include "widelimit/fields/config_reader.hpp"

namespace widelimit::testing {

/// read(fields) of a configuration by the rows of a table, all of whose given fields it must have read.
template <typename Read>
auto read_whole(const nlohmann::json& config, const ConfigFields& rows, const Read& read) {
  ConfigReader fields(config, rows);
  auto setup = read(fields);
  fields.finish(unused_field);
  return setup;
}

}  // namespace widelimit::testing
