#pragma once

#include <nlohmann/json.hpp>

#include "widelimit/gp/model.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

/// What fit() did to the inputs before the model saw them, to be done to new ones (gp::ModelOptions::preparation).
inline nlohmann::json preparation_of(const gp::Model& model) {
  return parse_json(model.preparation(), "preparation");
}

}  // namespace widelimit::cli
