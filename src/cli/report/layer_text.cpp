#include <fmt/format.h>

#include <algorithm>

#include "cli/report/network_diagram.hpp"
#include "widelimit/layers/kinds.hpp"

namespace widelimit::cli {
namespace {

using LayerJson = nlohmann::ordered_json;

constexpr std::string_view weights = "#dbe8f6", activations = "#fde5d0", poolings = "#dcefe3",
                           attentions = "#eadff3", others = "#ececec";

/// Layers of a user's own, whose kinds the library does not know, look like the layers that are nothing special.
std::string_view colour_of(const std::string& name) {
  using layers::KindGroup;
  const layers::LayerKind* kind = layers::builtin_kind(name);
  if (kind == nullptr) return others;
  switch (kind->group) {
    case KindGroup::weights:
      return weights;
    case KindGroup::activation:
      return activations;
    case KindGroup::pooling:
    case KindGroup::positions:
    case KindGroup::graph:
      return poolings;
    case KindGroup::attention:
      return attentions;
    case KindGroup::normalisation:
    case KindGroup::dropout:
    case KindGroup::branches:
      break;
  }
  return others;
}

std::string number_text(const LayerJson& value) {
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

std::string sizes_text(const LayerJson& sizes) {
  std::string text;
  for (const LayerJson& size : sizes) text += (text.empty() ? "" : " × ") + number_text(size);
  return text;
}

bool all_ones(const LayerJson& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const LayerJson& size) { return size == 1; });
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// "σ² 2 + 0.01": of weights and biases.
std::string variances_text(const LayerJson& layer) {
  if (!layer.contains("weight_variance")) return "";
  const std::string bias =
      layer.value("bias_variance", 0.0) == 0 ? "" : " + " + number_text(layer["bias_variance"]);
  return "σ² " + number_text(layer["weight_variance"]) + bias;
}

std::string window_text(const LayerJson& layer) {
  std::vector<std::string> parts;
  for (const char* size : {"filter", "window"})
    if (layer.contains(size) && layer[size].is_array()) parts.push_back(sizes_text(layer[size]));
  if (layer.contains("strides") && !all_ones(layer["strides"]) &&
      layer.value("strides", LayerJson()) != layer.value("window", LayerJson()))
    parts.push_back("stride " + sizes_text(layer["strides"]));
  if (layer.contains("padding") && layer["padding"].is_string() && layer.contains("filter") &&
      layer["padding"] != "same")
    parts.push_back(layer["padding"].get<std::string>());
  if (layer.contains("pads") && layer["pads"].is_array())
    parts.push_back("pads " + sizes_text(layer["pads"]));
  if (layer.contains("dilations") && layer["dilations"].is_array() && !all_ones(layer["dilations"]))
    parts.push_back("dilation " + sizes_text(layer["dilations"]));
  return joined(parts);
}

std::string attention_text(const LayerJson& layer) {
  const LayerJson& kind = layer["weights"];
  std::vector<std::string> parts{kind.is_string() ? kind.get<std::string>() : kind.value("layer", "weights")};
  parts.emplace_back(layer.value("scaling", "") == "inverse_width" ? "1/width" : "1/√width");
  if (layer.value("causal", false)) parts.emplace_back("causal");
  if (layer.contains("positions") && layer["positions"].is_object())
    parts.push_back(layer["positions"].value("kind", "") + " positions");
  for (const char* extra : {"rotary", "window", "mask"})
    if (layer.contains(extra) && !layer[extra].is_null()) parts.emplace_back(extra);
  return joined(parts);
}

/// The plain numbers of a layer that nothing above knows.
std::string numbers_text(const LayerJson& layer) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : layer.items())
    if (key != "epsilon" && key != "weight_variance" && key != "bias_variance" && value.is_number())
      parts.push_back(key + " " + number_text(value));
  return joined(parts);
}

std::string details_of(const LayerJson& layer, const std::string& kind) {
  if (kind == "attention" && layer.contains("weights")) return attention_text(layer);
  return joined({window_text(layer), variances_text(layer), numbers_text(layer)});
}

}  // namespace

LayerText layer_text(const LayerJson& layer) {
  const auto kind = layer.value("layer", std::string("?"));
  std::string name = kind;
  std::replace(name.begin(), name.end(), '_', ' ');
  return {std::move(name), details_of(layer, kind), colour_of(kind)};
}

std::vector<LayerJson> folded_layers(const LayerJson& layers) {
  constexpr std::size_t longest_period = 12;
  const std::vector<LayerJson> all(layers.begin(), layers.end());
  std::vector<LayerJson> result;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t best_period = 0, best_times = 1;
    for (std::size_t period = 1; period <= longest_period; ++period) {
      std::size_t times = 1;
      while (at + (times + 1) * period <= all.size() &&
             std::equal(all.begin() + static_cast<std::ptrdiff_t>(at),
                        all.begin() + static_cast<std::ptrdiff_t>(at + period),
                        all.begin() + static_cast<std::ptrdiff_t>(at + times * period)))
        ++times;
      if (times > 1 && times * period > best_times * best_period) {
        best_period = period;
        best_times = times;
      }
    }
    if (best_times == 1) {
      result.push_back(all[at++]);
      continue;
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    result.push_back(
        {{"layer", "repeat"},
         {"times", best_times},
         {"layers", std::vector<LayerJson>(first, first + static_cast<std::ptrdiff_t>(best_period))}});
    at += best_period * best_times;
  }
  return result;
}

}  // namespace widelimit::cli
