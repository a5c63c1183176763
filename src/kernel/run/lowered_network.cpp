#include "kernel/run/lowered_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "kernel/inputs/features.hpp"
#include "kernel/plan/primitives.hpp"
#include "kernel/readouts/pulled_readout.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Sizes of buffers are products of positions, channels and the number of arrays. With at most 2^48 numbers an input,
/// none of them overflows a 64-bit index.
void check_size(const Shape& shape, const std::string& name, Index channels) {
  constexpr double most_numbers = 0x1p48;
  double numbers = static_cast<double>(channels);
  for (const Index size : shape) numbers *= static_cast<double>(size);
  if (numbers > most_numbers)
    throw NetworkError(fmt::format("{} ({}): expected at most {:.3g} numbers an input, got {:.3g}", name,
                                   to_string(shape), most_numbers, numbers));
}

NetworkError error_of_input(const Shape& shape, const std::string& name, const NetworkError& error) {
  return NetworkError(fmt::format("{} ({}): {}", name, to_string(shape), error.what()));
}

std::vector<Shape> shapes_after(const Graph& graph, const Shape& shape, const std::string& name) {
  try {
    return node_shapes(graph, shape);
  } catch (const NetworkError& error) {
    throw error_of_input(shape, name, error);
  }
}

const Shape& largest_of(const NamedShapes& shapes) {
  return std::max_element(
             shapes.begin(), shapes.end(),
             [](const auto& a, const auto& b) { return position_count(a.first) < position_count(b.first); })
      ->first;
}

bool can_be_lowered(const Network& network, const Shape& shape, const InputTraits& inputs) {
  try {
    static_cast<void>(Lowering::lower(network, shape, {}, inputs));
    return true;
  } catch (const NetworkError&) {
    return false;
  }
}

/// The network as lowered for the largest shape. An error names the input of that shape if the network can be applied
/// to another shape: then the input is what is wrong, and not the network or the shape of all inputs.
Graph lower_largest(const Network& network, const NamedShapes& shapes, const InputTraits& inputs,
                    const Replicate& replicate, Readouts readouts) {
  const Shape& largest = largest_of(shapes);
  try {
    return lower_with_readouts(network, largest, replicate, inputs, readouts);
  } catch (const NetworkError& error) {
    const bool fits_another = std::any_of(shapes.begin(), shapes.end(), [&](const auto& other) {
      return other.first != largest && can_be_lowered(network, other.first, inputs);
    });
    if (!fits_another) throw;
    throw error_of_input(largest, shapes.at(largest), error);
  }
}

bool flattens(const Operation& operation) {
  if (reads_out(operation)) return reads_of(operation) == Reads::equal_positions;
  if (const PairStage* pair = pair_stage_of(operation)) return is_pulled_flatten(*pair);
  const auto is_flatten = [](const FeatureTransform& transform) {
    const auto* readout = std::get_if<FeatureReadout>(&transform);
    return readout != nullptr && readout->kind == ReadoutKind::flatten;
  };
  const auto* transforms = input_transforms(operation);
  return transforms != nullptr && std::any_of(transforms->begin(), transforms->end(), is_flatten);
}

/// What a flattening node flattens, for inputs of a shape: the inputs themselves, of which only the number of
/// positions counts, or positions after layers.
Shape flattened_shape(const Graph& graph, NodeId id, const Shape& input) {
  const Node& node = graph.nodes[id];
  if (const auto* transforms = input_transforms(node.operation))
    return {transformed_channels(input, 1, *transforms)};
  return node_shapes(graph, input)[node.inputs[0]];
}

/// The positions of a flattened input become channels, so all inputs need equally many.
void check_flattened(const Graph& graph, const NamedShapes& shapes) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!flattens(graph.nodes[id].operation)) continue;
    const auto& [first_shape, first_name] = *shapes.begin();
    const Shape expected = flattened_shape(graph, id, first_shape);
    for (const auto& [shape, name] : shapes)
      if (const Shape flattened = flattened_shape(graph, id, shape); flattened != expected)
        throw NetworkError(
            fmt::format("{}: expected inputs of equal size, got {} positions for {} and {} for {}; use "
                        "global_average_pool for inputs of different size",
                        graph.nodes[id].path, to_string(expected), first_name, to_string(flattened), name));
  }
}

}  // namespace

LoweredNetwork lower_for(const Network& network, const NamedShapes& shapes, const InputTraits& inputs,
                         const Replicate& replicate, Readouts readouts) {
  for (const auto& [shape, name] : shapes) check_size(shape, name, inputs.channels);
  const Shape& largest = largest_of(shapes);
  LoweredNetwork lowered{lower_largest(network, shapes, inputs, replicate, readouts), {}};
  lowered.shapes.push_back(node_shapes(lowered.graph, largest));
  for (const auto& [shape, name] : shapes)
    if (shape != largest) lowered.shapes.push_back(shapes_after(lowered.graph, shape, name));
  // The graph is that of the largest shape and holds for all: operations contain windows and strides, no sizes.
  // Whether they can be applied to another shape is found out by computing all shapes after its nodes.
  if (shapes.size() > 1) check_flattened(lowered.graph, shapes);
  return lowered;
}

}  // namespace widelimit
