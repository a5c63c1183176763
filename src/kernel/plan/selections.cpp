#include "kernel/plan/selections.hpp"

#include <algorithm>
#include <optional>

#include "network/plane_mapping.hpp"

namespace widelimit {
namespace {

/// The positions begin, begin + stride, ... before `end`. It is -1 if no further position would follow in the input.
struct Steps {
  Index begin;
  Index stride;
  Index end;
  [[nodiscard]] bool operator==(const Steps&) const = default;
};

/// The steps of a map along one axis. Every row must read exactly one position, with weight 1, and rows must be
/// equally far apart.
std::optional<Steps> steps_of(const SparseAxis& axis) {
  const Index rows = axis.rows();
  if (rows < 1 || static_cast<Index>(axis.column.size()) != rows) return std::nullopt;
  const Index first = axis.column[0], stride = rows > 1 ? axis.column[1] - first : axis.columns;
  for (std::size_t a = 0; a < static_cast<std::size_t>(rows); ++a)
    if (axis.begin[a] != a || axis.weight[a] != 1 || stride < 1 ||
        axis.column[a] != first + stride * static_cast<Index>(a))
      return std::nullopt;
  const Index behind = first + stride * rows;
  return Steps{first, stride, behind < axis.columns ? behind : -1};
}

/// The window that selects the same positions as a map, if it does so for all inputs of these shapes before the map.
std::optional<Window> selection_of(const PlaneMapping& mapping, const std::vector<Shape>& inputs) {
  Window window{
      .sizes = std::vector<Index>(inputs.front().size(), 1), .strides = {}, .padding = Padding::valid};
  const auto axes = mapping.sparse_axes(inputs.front());
  for (std::size_t k = 3 - inputs.front().size(); k < 3; ++k) {
    const std::optional<Steps> steps = steps_of(axes[k]);
    if (!steps) return std::nullopt;
    const bool agrees = std::all_of(inputs.begin(), inputs.end(), [&](const Shape& input) {
      return steps_of(mapping.sparse_axes(input)[k]) == steps;
    });
    if (!agrees) return std::nullopt;
    window.strides.push_back(steps->stride);
    window.begin.push_back(steps->begin);
    window.end.push_back(steps->end);
  }
  return window;
}

}  // namespace

Graph with_selections(Graph graph, const std::vector<std::vector<Shape>>& shapes) {
  for (Node& node : graph.nodes) {
    const PlaneMapping* mapping = plane_mapping(pair_stage_of(node.operation));
    if (mapping == nullptr) continue;
    std::vector<Shape> inputs;
    inputs.reserve(shapes.size());
    for (const std::vector<Shape>& of_nodes : shapes) inputs.push_back(of_nodes[node.inputs[0]]);
    if (const std::optional<Window> window = selection_of(*mapping, inputs))
      // Without weights there is no term K' in T'.
      node.operation = AffineNode{*window, 1, 0, AffineNode::Weights::none};
  }
  return graph;
}

}  // namespace widelimit
