#include "propagation/attention_parts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "widelimit/network/network_file.hpp"

namespace widelimit::propagation {

std::vector<std::string> AttentionParts::names() const {
  if (tied) return {"query and key", "value", "output"};
  return {"query", "key", "value", "output"};
}

std::vector<Index> AttentionParts::counts(Index width, const finite::Heads& heads) const {
  // Widths that are not given are those of FiniteNetwork.
  const Index key_width = heads.key_width > 0 ? heads.key_width : std::max<Index>(1, width / heads.count),
              value_width = heads.value_width > 0 ? heads.value_width : key_width;
  const auto affine = [](Index in, Index out, double bias) { return in * out + (bias > 0 ? out : 0); };
  std::vector<Index> result{affine(width, heads.count * key_width, query_bias_variance)};
  if (!tied) result.push_back(affine(width, heads.count * key_width, key_bias_variance));
  result.push_back(affine(width, heads.count * value_width, 0));
  result.push_back(affine(heads.count * value_width, width, bias_variance));
  return result;
}

std::optional<AttentionParts> attention_parts(const Layer& layer) {
  if (layer.kind() != "attention") return std::nullopt;
  // The file's form holds all options, whatever the layer's class is.
  const nlohmann::json options = nlohmann::json::parse(to_json(Network({layer}))).at("layers").at(0);
  if (options.contains("positions") && !options["positions"].is_null()) return std::nullopt;
  const auto number = [&](const char* name) { return options.value(name, 0.0); };
  return AttentionParts{options.value("tied", options.at("scaling") == "inverse_width"),
                        number("bias_variance"), number("query_bias_variance"), number("key_bias_variance")};
}

}  // namespace widelimit::propagation
