#include "kernel/backends/reference/naive_windows.hpp"

#include <algorithm>
#include <map>

namespace widelimit::testing {

Position position_of(Index flat, const Shape& shape) {
  Position position(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    position[i] = flat % shape[i];
    flat /= shape[i];
  }
  return position;
}

namespace {

/// Windows along one axis: tap o at output position a is at stride a + dilation o - front.
struct Steps {
  Index stride, dilation, front, outputs;
};

Steps steps_along(std::size_t i, Index size, Index taps, const nlohmann::json& layer) {
  Steps steps{layer["strides"][i], layer.contains("dilations") ? layer["dilations"][i].get<Index>() : 1, 0,
              0};
  const Index span = 1 + steps.dilation * (taps - 1);
  if (layer.contains("pads")) {
    const auto& pads = layer["pads"];
    const std::size_t axes = layer["strides"].size();
    steps.front = pads[i];
    const Index all = size + steps.front + pads[pads.size() - axes + i].get<Index>();
    steps.outputs = (all - span) / steps.stride + 1;
  } else if (layer["padding"] == "valid") {
    steps.outputs = (size - span) / steps.stride + 1;
  } else {
    steps.outputs = (size + steps.stride - 1) / steps.stride;
    steps.front = std::max<Index>((steps.outputs - 1) * steps.stride + span - size, 0) / 2;
  }
  return steps;
}

}  // namespace

Cover cover(const Shape& shape, const nlohmann::json& sizes, const nlohmann::json& layer) {
  Cover result;
  Shape window;
  std::vector<Steps> steps;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    window.push_back(sizes[i]);
    steps.push_back(steps_along(i, shape[i], window[i], layer));
    result.shape.push_back(steps[i].outputs);
  }
  const bool circular = layer.value("padding", "") == "circular";
  for (Index a = 0; a < position_count(result.shape); ++a) {
    const Position at = position_of(a, result.shape);
    std::vector<Index> members;
    for (Index o = 0; o < position_count(window); ++o) {
      const Position offset = position_of(o, window);
      Index flat = 0;
      for (std::size_t i = 0; i < shape.size() && flat >= 0; ++i) {
        Index place = at[i] * steps[i].stride + offset[i] * steps[i].dilation - steps[i].front;
        if (circular) place = ((place % shape[i]) + shape[i]) % shape[i];
        flat = place < 0 || place >= shape[i] ? -1 : flat * shape[i] + place;
      }
      members.push_back(flat);
    }
    Index middle = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const Index place = at[i] * steps[i].stride + (window[i] - 1) / 2 * steps[i].dilation - steps[i].front;
      middle = middle * shape[i] + std::clamp<Index>(place, 0, shape[i] - 1);
    }
    result.middles.push_back(middle);
    result.members.push_back(std::move(members));
  }
  return result;
}

NaiveMask mask_after(const Cover& windows, const NaiveMask& before) {
  NaiveMask counts;
  for (const Index middle : windows.middles) counts.push_back(before.at(static_cast<std::size_t>(middle)));
  return counts;
}

std::vector<std::vector<Index>> groups_along(const Shape& shape, const std::vector<Index>& axes) {
  std::map<Position, std::vector<Index>> groups;
  for (Index a = 0; a < position_count(shape); ++a) {
    Position rest = position_of(a, shape);
    for (const Index axis : axes) rest.at(static_cast<std::size_t>(axis)) = 0;
    groups[rest].push_back(a);
  }
  std::vector<std::vector<Index>> result;
  for (const auto& [rest, group] : groups) result.push_back(group);
  return result;
}

}  // namespace widelimit::testing
