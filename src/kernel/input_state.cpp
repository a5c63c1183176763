#include "kernel/input_state.hpp"

#include "kernel/features.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

StateLayout make_state_layout(const Program& program, const std::vector<Shape>& shapes,
                              const Shape& input_shape, Index channels) {
  const auto& nodes = program.graph.nodes;
  StateLayout layout;
  layout.shape = input_shape;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const Operation& operation = nodes[id].operation;
    Index arrays = 0, extra = 0;
    Shape shape = shapes[id];
    if (const auto* input = std::get_if<InputNode>(&operation))
      arrays = transformed_channels(input_shape, channels, input->transforms);
    if (const auto* row = std::get_if<RowNode>(&operation))
      arrays = static_cast<Index>(row->stage->auxiliary_count());
    if (const auto* pair = std::get_if<PairNode>(&operation)) {
      shape = shapes[nodes[id].inputs[0]];
      arrays = 1;
      extra = static_cast<Index>(pair->stage->state_size(shape));
    }
    if (const auto* features = std::get_if<FeatureNode>(&operation))
      extra = static_cast<Index>(
          features->stage->state_size(transformed_shape(input_shape, features->transforms),
                                      transformed_channels(input_shape, channels, features->transforms)));
    // A vector's channels are one array, ready for products of whole batches.
    const bool vector_features = std::holds_alternative<InputNode>(operation) && shape.empty();
    layout.offset.push_back(layout.size);
    layout.positions.push_back(padded(vector_features ? arrays : position_count(shape)));
    layout.arrays.push_back(vector_features ? 1 : arrays);
    layout.extra.push_back(layout.size + layout.arrays.back() * layout.positions.back());
    layout.size = layout.extra.back() + padded(extra);
  }
  return layout;
}

}  // namespace widelimit
