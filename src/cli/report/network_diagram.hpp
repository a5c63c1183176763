#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace widelimit::cli {

/// What a box of a diagram says about a layer.
struct LayerText {
  std::string name;
  std::string details;  ///< Its numbers, in short; may be empty.
  std::string_view colour;
};

/// Of a layer as network files have it, branches and repeats aside.
[[nodiscard]] LayerText layer_text(const nlohmann::ordered_json& layer);

/// Layers of which runs that repeat are written once: {"repeat", "times", "layers"}, whatever wrote them.
[[nodiscard]] std::vector<nlohmann::ordered_json> folded_layers(const nlohmann::ordered_json& layers);

/// What diagrams of a page share: stands before them, once.
inline constexpr const char* diagram_definitions =
    "<svg width='0' height='0' style='position:absolute' aria-hidden='true'><defs><marker id='arrow' "
    "viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'><path d='M0,0 L8,4 "
    "L0,8 z' fill='#555'/></marker></defs></svg>";

/// A network, as network files have it, as an inline SVG: boxes from left to right, on several lines where need be.
[[nodiscard]] std::string network_diagram(const nlohmann::ordered_json& network);

}  // namespace widelimit::cli
