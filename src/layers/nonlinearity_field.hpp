#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layers/kind_rows.hpp"

/// Fields of network files that hold a nonlinearity: its kind, or its object.
namespace widelimit::layers {

/// Reads the field, which is there. `others`: words that mean something else there, for the error of an unknown one.
[[nodiscard]] Layer read_nonlinearity(KindFields& fields, const std::string& name,
                                      const std::vector<std::string>& others = {});

/// What read_nonlinearity() reads: the kind alone if it has no fields.
[[nodiscard]] nlohmann::ordered_json nonlinearity_field(const Layer& nonlinearity);

}  // namespace widelimit::layers
