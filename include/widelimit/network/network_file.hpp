#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "widelimit/network/network.hpp"

namespace widelimit {

class FieldReader;  // widelimit/network/field_reader.hpp

/// Network files are JSON, described in docs/network-format.md. Writing and reading again gives an equal
/// network. Unknown kinds or fields, missing fields and values out of range throw NetworkError naming their
/// path, and the file; one that cannot be opened or is not JSON as read_json() asks throws DataError.
[[nodiscard]] Network read_network(const std::filesystem::path& file);
[[nodiscard]] Network parse_network(const std::string& json_text);
[[nodiscard]] std::string to_json(const Network& network);
void write_network(const std::filesystem::path& file, const Network& network);

/// Makes a layer from the fields of its JSON object ("layer" itself is already read). It must read every field
/// it knows; the caller reports the rest as unknown. ArgumentErrors are passed on, preceded by the path.
using LayerReader = std::function<Layer(FieldReader&)>;

/// Adds a kind of layer to network files, for your own layers. Kinds are never overridden: a name that
/// already exists throws ArgumentError. Call it before files are read; safe to call from any thread.
void register_layer_kind(const std::string& kind, LayerReader reader);

/// All registered kinds, sorted.
[[nodiscard]] std::vector<std::string> layer_kinds();

}  // namespace widelimit
