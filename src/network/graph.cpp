#include "network/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "network/position_groups.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

Shape without_positions(const Shape& input) {
  if (input.empty())
    throw ArgumentError(
        "expected inputs with positions, got vectors; leave the layer out (named networks: axes=0)");
  return {};
}

Shape feature_shape(const FeatureTransform& transform, const Shape& input) {
  if (const auto* pool = std::get_if<FeaturePool>(&transform))
    return window_output_shape(input, pool->window);
  if (std::holds_alternative<FeatureReadout>(transform)) return without_positions(input);
  static_cast<void>(std::get<FeatureNorm>(transform).axes.groups(input));  // throws if they do not fit
  return input;
}

/// The shape after a pair stage, which users write: any sizes may come.
Shape shape_after(const PairStage& stage, const Shape& input) {
  constexpr std::size_t most_axes = 3;
  Shape shape = stage.output_shape(input);
  if (shape.size() > most_axes ||
      std::any_of(shape.begin(), shape.end(), [](Index size) { return size < 1; }))
    throw ArgumentError(
        fmt::format("the stage's output_shape() must have at most {} axes of at least one position each, got "
                    "{} for the input {}",
                    most_axes, axes_text(shape), axes_text(input)));
  return shape;
}

/// How each operation changes shapes, as a visitor. Stages and windows throw if they cannot take theirs.
struct ShapeRule {
  const std::vector<Shape>& inputs;
  const Shape& network_input;

  Shape operator()(const InputNode& node) const { return transformed_shape(node.transforms, network_input); }
  Shape operator()(const FeatureNode& node) const {
    node.stage->check_shape(transformed_shape(node.transforms, network_input));
    return {};
  }
  Shape operator()(const AffineNode& node) const { return window_output_shape(inputs[0], node.window); }
  Shape operator()(const LocalAffineNode& node) const {
    return window_output_shape(inputs[0], node.affine.window);
  }
  Shape operator()(const PoolNode& node) const { return window_output_shape(inputs[0], node.window); }
  Shape operator()(const ReadoutNode&) const { return without_positions(inputs[0]); }
  Shape operator()(const PairNode& node) const { return shape_after(*node.stage, inputs[0]); }
  Shape operator()(const RowNode&) const { return inputs[0]; }
  Shape operator()(const SumNode&) const { return common_shape(); }
  Shape operator()(const ProductNode&) const { return common_shape(); }

  Shape common_shape() const {
    for (std::size_t i = 1; i < inputs.size(); ++i)
      if (inputs[i] != inputs[0])
        throw ArgumentError(
            fmt::format("expected branches of equal shape, got {} (branch 0) and {} (branch {})",
                        axes_text(inputs[0]), axes_text(inputs[i]), i));
    return inputs[0];
  }
};

}  // namespace

std::vector<std::vector<Index>> NormedAxes::groups(const Shape& shape) const {
  if (!all) return position_groups(shape, some);
  std::vector<Index> axes(shape.size());
  std::iota(axes.begin(), axes.end(), Index{0});
  return position_groups(shape, axes);
}

Shape transformed_shape(const std::vector<FeatureTransform>& transforms, const Shape& network_input) {
  Shape shape = network_input;
  for (const FeatureTransform& transform : transforms) shape = feature_shape(transform, shape);
  return shape;
}

Shape output_shape(const Operation& operation, const std::vector<Shape>& inputs, const Shape& network_input) {
  return std::visit(ShapeRule{inputs, network_input}, operation);
}

std::vector<Shape> node_shapes(const Graph& graph, const Shape& network_input) {
  std::vector<Shape> shapes;
  shapes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    std::vector<Shape> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(shapes[input]);
    try {
      shapes.push_back(output_shape(node.operation, inputs, network_input));
    } catch (const ArgumentError& error) {
      throw NetworkError(fmt::format("{}: {}", node.path, error.what()));
    }
  }
  return shapes;
}

Graph reachable_part(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  needed[graph.output] = true;
  // Nodes behind the output cannot be needed. From there to the front, every consumer is visited before its inputs,
  // so that one pass marks all of them.
  for (NodeId id = graph.output + 1; id-- > 0;)
    if (needed[id])
      for (const NodeId input : graph.nodes[id].inputs) needed[input] = true;
  Graph part;
  part.fewest_samples = graph.fewest_samples;
  std::vector<NodeId> renamed(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!needed[id]) continue;
    renamed[id] = part.nodes.size();
    Node node = graph.nodes[id];
    for (NodeId& input : node.inputs) input = renamed[input];
    part.nodes.push_back(std::move(node));
  }
  part.output = renamed[graph.output];
  return part;
}

const RowStage* row_stage_of(const Operation& operation) {
  const auto* row = std::get_if<RowNode>(&operation);
  return row == nullptr ? nullptr : row->stage.get();
}

const PairStage* pair_stage_of(const Operation& operation) {
  const auto* pair = std::get_if<PairNode>(&operation);
  return pair == nullptr ? nullptr : pair->stage.get();
}

const std::vector<FeatureTransform>* input_transforms(const Operation& operation) {
  if (const auto* input = std::get_if<InputNode>(&operation)) return &input->transforms;
  if (const auto* features = std::get_if<FeatureNode>(&operation)) return &features->transforms;
  return nullptr;
}

}  // namespace widelimit
