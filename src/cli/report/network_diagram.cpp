#include "cli/report/network_diagram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "cli/output/text_parts.hpp"
#include "cli/report/html.hpp"

namespace widelimit::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double arrow = 22, box_height = 42, gap = 16, line_width = 1180;

/// A part of the diagram; what flows goes in on the left and out on the right, at height `middle`.
struct Part {
  double width = 0;
  double height = 0;
  double middle = 0;
  std::string svg;
};

std::string moved(const Part& part, double x, double y) {
  return fmt::format("<g transform='translate({:.1f},{:.1f})'>{}</g>", x, y, part.svg);
}

std::string flow(double x0, double x1, double y) {
  return fmt::format("<path d='M{:.1f},{:.1f} H{:.1f}' class='flow' marker-end='url(#arrow)'/>", x0, y,
                     x1 - 1);
}

Part box(const LayerText& text) {
  const double width = std::max({46.0, 7.2 * static_cast<double>(letter_count(text.name)) + 20,
                                 5.7 * static_cast<double>(letter_count(text.details)) + 16});
  const double first_line = text.details.empty() ? 26 : 18;
  Part part{width, box_height, box_height / 2, ""};
  part.svg = fmt::format(
      "<rect width='{0:.1f}' height='{1}' rx='6' fill='{2}' class='layer'/><text x='{3:.1f}' y='{4}' "
      "text-anchor='middle' class='name'>{5}</text><text x='{3:.1f}' y='33' text-anchor='middle' "
      "class='details'>{6}</text>",
      width, box_height, text.colour, width / 2, first_line, html_escaped(text.name),
      html_escaped(text.details));
  return part;
}

Part sequence(const std::vector<Part>& parts) {
  Part result;
  double below = 0;
  for (const Part& part : parts) {
    result.middle = std::max(result.middle, part.middle);
    below = std::max(below, part.height - part.middle);
  }
  result.height = result.middle + below;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      result.svg += flow(result.width, result.width + arrow, result.middle);
      result.width += arrow;
    }
    result.svg += moved(parts[i], result.width, result.middle - parts[i].middle);
    result.width += parts[i].width;
  }
  return result;
}

std::vector<Part> parts_of(const Json& layers);

Part repeat(const Json& layer) {
  const Part inner = sequence(parts_of(layer["layers"]));
  constexpr double margin = 12, label = 18;
  Part part{inner.width + 2 * margin, inner.height + 2 * margin + label, margin + inner.middle, ""};
  part.svg = fmt::format(
      "<rect width='{:.1f}' height='{:.1f}' rx='10' class='repeat'/>{}<text x='{:.1f}' y='{:.1f}' "
      "text-anchor='end' class='times'>× {}</text>",
      part.width, part.height, moved(inner, margin, margin), part.width - margin, part.height - 8,
      layer.value("times", std::int64_t{1}));
  // The flow goes through the frame.
  part.svg += fmt::format("<path d='M0,{0:.1f} H{1} M{2:.1f},{0:.1f} H{3:.1f}' class='flow'/>", part.middle,
                          margin, part.width - margin, part.width);
  return part;
}

std::string branch_label(const Json& branch) {
  for (const char* factor : {"scale", "share"})
    if (branch.contains(factor) && branch[factor] != 1)
      return fmt::format("{:.4g}", branch[factor].get<double>());
  return "";
}

Part branches(const Json& layer, const std::string& kind) {
  const std::string sign = kind == "sum" ? "+" : kind == "product" ? "×" : "∥";
  std::vector<Part> parts;
  double inner = 0;
  for (const Json& branch : layer["branches"]) {
    parts.push_back(sequence(parts_of(branch["layers"])));
    if (parts.back().height == 0) parts.back().height = 14;
    if (parts.back().middle == 0) parts.back().middle = 7;
    inner = std::max(inner, parts.back().width);
  }
  constexpr double side = 38, circle = 11;
  Part result{inner + 2 * side + 2 * circle, 0, 0, ""};
  std::vector<double> middles;
  for (const Part& part : parts) {
    middles.push_back(result.height + part.middle);
    result.height += part.height + gap;
  }
  result.height -= gap;
  result.middle = (middles.front() + middles.back()) / 2;
  const double join = result.width - 2 * circle;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double indent = side + (inner - parts[i].width) / 2, y = middles[i];
    result.svg += fmt::format(
        "<path d='M0,{0:.1f} H8 V{1:.1f} H{2:.1f} M{3:.1f},{1:.1f} H{4:.1f} V{0:.1f} H{5:.1f}' "
        "class='flow'/>",
        result.middle, y, indent, indent + parts[i].width, join - 8, join);
    result.svg += moved(parts[i], indent, y - parts[i].middle);
    result.svg += fmt::format("<text x='12' y='{:.1f}' class='details'>{}</text>", y - 4,
                              html_escaped(branch_label(layer["branches"][i])));
  }
  result.svg += fmt::format(
      "<circle cx='{0:.1f}' cy='{1:.1f}' r='{2}' class='join'/><text x='{0:.1f}' y='{3:.1f}' "
      "text-anchor='middle' class='name'>{4}</text>",
      join + circle, result.middle, circle, result.middle + 5, sign);
  return result;
}

Part part_of(const Json& layer) {
  const auto kind = layer.value("layer", std::string());
  if (kind == "repeat" && layer.contains("layers")) return repeat(layer);
  if (layer.contains("branches") && layer["branches"].is_array() && !layer["branches"].empty())
    return branches(layer, kind);
  return box(layer_text(layer));
}

std::vector<Part> parts_of(const Json& layers) {
  std::vector<Part> parts;
  for (const Json& layer : folded_layers(layers)) parts.push_back(part_of(layer));
  return parts;
}

/// As many parts on a line as fit; one at least.
std::vector<Part> lines_of(const std::vector<Part>& parts) {
  std::vector<Part> lines;
  std::vector<Part> line;
  double width = 0;
  for (const Part& part : parts) {
    if (!line.empty() && width + part.width > line_width) {
      lines.push_back(sequence(line));
      line.clear();
      width = 0;
    }
    line.push_back(part);
    width += part.width + arrow;
  }
  lines.push_back(sequence(line));
  return lines;
}

}  // namespace

std::string network_diagram(const Json& network) {
  const LayerText input{"input", "", "#ffffff"}, output{"output", "", "#ffffff"};
  std::vector<Part> parts{box(input)};
  for (Part& part : parts_of(network["layers"])) parts.push_back(std::move(part));
  parts.push_back(box(output));
  std::string body;
  double width = 0, height = 0;
  const std::vector<Part> lines = lines_of(parts);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double indent = i == 0 ? 2 : arrow + 2;
    if (i > 0) body += flow(2, indent, height + lines[i].middle);
    body += moved(lines[i], indent, height);
    width = std::max(width, indent + lines[i].width + 2);
    height += lines[i].height + gap;
  }
  return fmt::format(
      "<svg viewBox='0 -2 {0:.0f} {1:.0f}' width='{0:.0f}' height='{1:.0f}' role='img' "
      "class='network'><title>The layers of {2}</title>{3}</svg>",
      width, height - gap + 4, html_escaped(network.value("name", std::string("the network"))), body);
}

}  // namespace widelimit::cli
