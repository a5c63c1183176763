#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "widelimit/network/layer.hpp"

namespace widelimit {

/// The kinds are those of layers/, where these functions are implemented, and those that users register.

/// Reads one layer object, or a JSON array of them, by the reader of its kind. Kinds are those of src/layers, where
/// these functions are implemented, and those that users register. `path` names the object in messages. Throws
/// NetworkError.
Layer read_layer(const nlohmann::json& object, const std::string& path);
Layers read_layers(const nlohmann::json& array, const std::string& path);

/// The kind, and the field, of layers that call functions of Python, whose own kinds nobody registers.
inline constexpr const char* python_kind = "python";

/// Whether network files may name the kind.
bool is_registered(const std::string& kind);

}  // namespace widelimit
