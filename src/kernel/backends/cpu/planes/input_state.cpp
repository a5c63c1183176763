#include "kernel/backends/cpu/planes/input_state.hpp"

#include <algorithm>

#include "kernel/inputs/features.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {
namespace {

/// The guards of the chain in which a node's arrays are read. Matrices have none.
Index3 guard_of(const Program& program, NodeId node) {
  for (const Step& step : program.steps) {
    const auto* plane = std::get_if<PlaneStep>(&step);
    if (plane == nullptr) continue;
    const auto& instructions = plane->chain.instructions;
    const bool reads = std::any_of(
        instructions.begin(), instructions.end(),
        [&](const Instruction& instruction) { return instruction.node == node && !instruction.loads; });
    if (reads) return chain_guard(program, plane->chain);
  }
  return {0, 0, 0};
}

}  // namespace

StateLayout make_state_layout(const Program& program, const std::vector<Shape>& shapes,
                              const Shape& input_shape, Index channels) {
  const auto& nodes = program.graph.nodes;
  StateLayout layout;
  layout.shape = input_shape;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const Operation& operation = nodes[id].operation;
    Index arrays = 0, extra = 0;
    Shape shape = shapes[id];
    const Recorded recorded = recorded_of(operation);
    switch (recorded) {
      case Recorded::nothing:
        break;
      case Recorded::features:
        arrays = transformed_channels(input_shape, channels, *input_transforms(operation));
        break;
      case Recorded::feature_state: {
        const std::vector<FeatureTransform>& transforms = *input_transforms(operation);
        extra = static_cast<Index>(
            feature_stage_of(operation)->state_size(transformed_shape(transforms, input_shape),
                                                    transformed_channels(input_shape, channels, transforms)));
        break;
      }
      case Recorded::auxiliaries:
        arrays = static_cast<Index>(row_stage_of(operation)->auxiliary_count());
        break;
      case Recorded::pair_state:
        shape = shapes[nodes[id].inputs[0]];
        arrays = 1;
        extra = static_cast<Index>(pair_stage_of(operation)->state_size(shape));
        break;
    }
    // The channels of a vector are one array, so that the products of whole batches are matrix products. Its variance
    // follows.
    const bool vector_features = recorded == Recorded::features && shape.empty();
    if (vector_features) extra = 1;
    // After the positions an array is a single number. These are not padded, so that those of all layers fit one or
    // two cache lines.
    const bool is_point = recorded == Recorded::auxiliaries && shape.empty();
    if ((arrays > 0 || extra > 0) && !is_point) layout.size = padded(layout.size);
    layout.offset.push_back(layout.size);
    const bool in_planes = recorded != Recorded::pair_state && !shape.empty() && !program.as_matrix[id];
    layout.planes.emplace_back(three_axes(shape), in_planes ? guard_of(program, id) : Index3{0, 0, 0});
    layout.positions.push_back(is_point ? 1 : padded(vector_features ? arrays : layout.planes.back().length));
    layout.arrays.push_back(vector_features ? 1 : arrays);
    layout.extra.push_back(layout.size + layout.arrays.back() * layout.positions.back());
    layout.size = layout.extra.back() + extra;
  }
  layout.size = padded(layout.size);
  return layout;
}

}  // namespace widelimit
