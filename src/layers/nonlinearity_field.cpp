#include "layers/nonlinearity_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "json/nearest_word.hpp"
#include "network/layer_model.hpp"
#include "network/registry.hpp"

namespace widelimit::layers {
namespace {

/// Throws NetworkError for a word that is none of these and no kind of layer.
void check_word(FieldReader& reader, const std::string& name, const std::string& word,
                std::vector<std::string> words) {
  if (is_registered(word)) return;
  for (const LayerKind& kind : builtin_kinds())
    if (kind.group == KindGroup::activation) words.push_back(kind.name);
  const std::string nearest = nearest_word(word, words);
  reader.fail(name, fmt::format("unknown {} \"{}\"{}; known are {}", name, word,
                                nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest),
                                fmt::join(words, ", ")));
}

}  // namespace

Layer read_nonlinearity(KindFields& fields, const std::string& name, const std::vector<std::string>& others) {
  FieldReader& reader = fields.reader(name);
  const nlohmann::json& value = reader.value(name);
  const std::string path = reader.path() + "." + name;
  if (!value.is_string()) return read_layer(value, path);
  check_word(reader, name, value.get<std::string>(), others);
  return read_layer({{"layer", value}}, path);
}

nlohmann::ordered_json nonlinearity_field(const Layer& nonlinearity) {
  if (model_of(nonlinearity).fields().empty()) return nonlinearity.kind();
  return to_json(nonlinearity);
}

}  // namespace widelimit::layers
