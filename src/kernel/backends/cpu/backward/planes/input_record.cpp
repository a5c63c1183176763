#include "kernel/backends/cpu/backward/planes/input_record.hpp"

#include "kernel/inputs/features.hpp"
#include "kernel/range/variance_checks.hpp"
#include "network/mask_stage.hpp"

namespace widelimit {

RecordLayout make_record_layout(const Program& program, const std::vector<Shape>& shapes, const Shape& input,
                                Index channels) {
  RecordLayout layout;
  const auto& nodes = program.graph.nodes;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    Index positions = 0, of_input = 0, auxiliaries = 0, state = 0;
    if (multiplies_features(nodes[id].operation) && !shapes[id].empty()) {
      positions = position_count(shapes[id]);
      of_input = transformed_channels(input, channels, *input_transforms(nodes[id].operation));
    }
    if (const RowStage* row = row_stage_of(nodes[id].operation)) {
      positions = position_count(shapes[id]);
      auxiliaries = static_cast<Index>(row->auxiliary_count());
    }
    if (const PairStage* pair = pair_stage_of(nodes[id].operation)) {
      const Shape& before = shapes[nodes[id].inputs[0]];
      positions = position_count(before);
      state = static_cast<Index>(pair->state_size(before));
    }
    const Index arrays = of_input > 0 ? of_input : (positions > 0 ? 1 : 0);
    layout.positions.push_back(positions);
    layout.channels.push_back(of_input);
    layout.auxiliaries.push_back(auxiliaries);
    layout.states.push_back(state);
    layout.values.push_back(layout.value_count);
    layout.adjoints.push_back(layout.adjoint_count);
    layout.value_count += (arrays + auxiliaries) * positions + state;
    layout.adjoint_count += arrays * positions + state;
  }
  return layout;
}

template <typename Scalar>
void prepare_row_stage(InputRecord<Scalar>& record, NodeId id, const RowStage& stage) {
  const Index positions = record.layout->positions[id];
  std::vector<Scalar*> arrays;
  for (Index k = 0; k < record.layout->auxiliaries[id]; ++k) arrays.push_back(record.auxiliary(id, k));
  check_variances(record.variances(id), positions);
  if (const auto* mask = dynamic_cast<const MaskStage*>(&stage))
    mask->fill(*record.mask, arrays[0]);
  else
    stage.prepare(record.variances(id), static_cast<std::size_t>(positions), arrays.data());
}

template void prepare_row_stage(InputRecord<float>&, NodeId, const RowStage&);
template void prepare_row_stage(InputRecord<double>&, NodeId, const RowStage&);

}  // namespace widelimit
