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

Cover cover(const Shape& shape, const nlohmann::json& sizes, const nlohmann::json& strides,
            const std::string& padding) {
  Cover result;
  Shape window, stride, front;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    window.push_back(sizes[i]);
    stride.push_back(strides[i]);
    const Index ceiling = (shape[i] + stride[i] - 1) / stride[i];
    result.shape.push_back(padding == "valid" ? (shape[i] - window[i]) / stride[i] + 1 : ceiling);
    front.push_back(
        padding == "valid" ? 0 : std::max<Index>((ceiling - 1) * stride[i] + window[i] - shape[i], 0) / 2);
  }
  Index middle = 0;
  for (const Index size : window) middle = middle * size + (size - 1) / 2;
  for (Index a = 0; a < position_count(result.shape); ++a) {
    const Position at = position_of(a, result.shape);
    std::vector<Index> members;
    for (Index o = 0; o < position_count(window); ++o) {
      const Position offset = position_of(o, window);
      Index flat = 0;
      for (std::size_t i = 0; i < shape.size() && flat >= 0; ++i) {
        Index place = at[i] * stride[i] + offset[i] - front[i];
        if (padding == "circular") place = ((place % shape[i]) + shape[i]) % shape[i];
        flat = place < 0 || place >= shape[i] ? -1 : flat * shape[i] + place;
      }
      members.push_back(flat);
    }
    result.middles.push_back(members[static_cast<std::size_t>(middle)]);
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
