#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "targets.hpp"

namespace widelimit::fuzz {

/// A JSON text whose numbers are small: a fuzzer wants many short runs, and large sizes have tests of their
/// own. Sizes shrink below 7, times to at most 1, steps grow to at least 0.1. Errors as parse_json().
nlohmann::json bounded_json(Bytes bytes);

/// Adds a field to an object that lacks it.
void set_default(nlohmann::json& object, const std::string& field, const nlohmann::json& value);

}  // namespace widelimit::fuzz
