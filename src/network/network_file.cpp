#include "widelimit/network/network_file.hpp"

#include <fmt/format.h>

#include <fstream>

#include "network/layer_model.hpp"
#include "network/network_identity.hpp"
#include "network/registry.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit {
namespace {

constexpr Index format_version = 1;

Network network_from(const nlohmann::json& document) {
  FieldReader reader(document, "network");
  if (!reader.has("widelimit"))
    reader.fail("widelimit",
                fmt::format("this field is missing: expected \"widelimit\": {}, the version of the "
                            "format, beside \"layers\"",
                            format_version));
  const Index version = reader.integer("widelimit");
  if (version != format_version)
    reader.fail("widelimit", fmt::format("expected format version {}, got {}", format_version, version));
  std::string name = reader.text("name", "");
  // Names stand in tables, and folders are called by them.
  constexpr std::size_t longest_name = 200;
  if (name.size() > longest_name)
    reader.fail("name", fmt::format("expected at most {} bytes, got {}", longest_name, name.size()));
  Layers layers = read_layers(reader.value("layers"), "layers");
  // Fields that this version does not know are errors, since ignoring them could change the network's meaning.
  reader.finish();
  return {std::move(name), std::move(layers)};
}

/// Throws NetworkError for the first layer in a part of a network's document whose kind has no reader.
void require_readers(const nlohmann::ordered_json& part, const std::string& path) {
  if (part.is_array()) {
    for (std::size_t i = 0; i < part.size(); ++i) require_readers(part[i], fmt::format("{}[{}]", path, i));
    return;
  }
  if (!part.is_object()) return;
  if (const auto kind = part.find("layer"); kind != part.end() && kind->is_string() &&
                                            !is_registered(*kind) &&
                                            !(part.contains(python_kind) && is_registered(python_kind)))
    throw NetworkError(
        fmt::format("{} ({}): cannot be written, because it could not be read back; register "
                    "the kind with register_layer_kind()",
                    path, kind->get<std::string>()));
  for (const auto& [name, field] : part.items()) require_readers(field, fmt::format("{}.{}", path, name));
}

/// Throws NetworkError for the first layer that is told from others by the names of its functions alone, whose text may
/// change.
void require_formulas(const nlohmann::ordered_json& part, const std::string& path) {
  if (part.is_array()) {
    for (std::size_t i = 0; i < part.size(); ++i) require_formulas(part[i], fmt::format("{}[{}]", path, i));
    return;
  }
  if (!part.is_object()) return;
  if (part.contains("layer") && part.contains(python_kind) && !part.contains("formula"))
    throw NetworkError(fmt::format(
        "{} ({}): a layer of your own, whose functions may change under their names, so that what is kept "
        "could be another's: expected functions made of JAX's arrays, with JAX imported before the layer "
        "is made, or no store and no folder of Gram matrices",
        path, part.at("layer").dump()));
  for (const auto& [name, field] : part.items()) require_formulas(field, fmt::format("{}.{}", path, name));
}

nlohmann::ordered_json document_of(const Network& network) {
  check_writable(network.layers(), "layers");
  nlohmann::ordered_json document;
  document["widelimit"] = format_version;
  document["name"] = network.name();
  document["layers"] = to_json(network.layers());
  return document;
}

std::string text_of(const nlohmann::ordered_json& document) { return document.dump(1) + "\n"; }

}  // namespace

Network parse_network(const std::string& json_text) { return network_from(parse_json(json_text, "network")); }

Network read_network(const std::filesystem::path& file) {
  return naming_errors(file.string(), [&] { return network_from(read_json(file)); });
}

std::string to_json(const Network& network) {
  const nlohmann::ordered_json document = document_of(network);
  require_readers(document["layers"], "layers");
  return text_of(document);
}

std::string network_identity(const Network& network) {
  const nlohmann::ordered_json document = document_of(network);
  require_formulas(document["layers"], "layers");
  return text_of(document);
}

void write_network(const std::filesystem::path& file, const Network& network) {
  files::replace_file(file, to_json(network));
}

}  // namespace widelimit
