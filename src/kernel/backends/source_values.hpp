#pragma once

#include <span>

#include "kernel/backends/gram_plan.hpp"
#include "kernel/inputs/features.hpp"

/// What rows of pairs begin with: products of vectors, and readouts on features. (Readouts of planes are in
/// PlaneExecutor.)
namespace widelimit {

inline const std::vector<FeatureTransform>& transforms_of(const GramPlan& plan, NodeId node) {
  return *input_transforms(plan.program.graph.nodes[node].operation);
}

inline Index vector_channels(const GramPlan& plan, NodeId node) {
  return transformed_channels(plan.any_layout().shape, plan.channels, transforms_of(plan, node));
}

template <typename Scalar>
std::span<const Scalar> vector_of(const GramPlan& plan, NodeId node, const InputState<Scalar>& state) {
  return {state.array(node, 0), static_cast<std::size_t>(vector_channels(plan, node))};
}

inline bool is_input(const GramPlan& plan, NodeId node) {
  return multiplies_features(plan.program.graph.nodes[node].operation);
}

/// The stage of a readout on features; null for other nodes.
inline const FeatureStage* feature_stage(const GramPlan& plan, NodeId node) {
  return feature_stage_of(plan.program.graph.nodes[node].operation);
}

/// Pairs one input with others by a readout on features, and calls take(j, values) for each of the others.
template <typename Scalar, typename Take>
void feature_values(const GramPlan& plan, NodeId id, const InputState<Scalar>& left,
                    std::span<const InputState<Scalar>* const> right, const Take& take) {
  const FeatureStage& stage = *feature_stage(plan, id);
  const std::vector<FeatureTransform>& transforms = transforms_of(plan, id);
  const Shape left_shape = transformed_shape(transforms, left.layout().shape);
  const Index channels = transformed_channels(left.layout().shape, plan.channels, transforms);
  const StateLayout* layout = nullptr;
  Shape right_shape;
  for (std::size_t j = 0; j < right.size(); ++j) {
    // Inputs come in the order of their shapes, so a shape is transformed once for many inputs.
    if (&right[j]->layout() != layout) {
      layout = &right[j]->layout();
      right_shape = transformed_shape(transforms, layout->shape);
    }
    take(j, stage.apply(FeaturePair<Scalar>{left.extra(id), right[j]->extra(id), left_shape, right_shape},
                        channels));
  }
}

}  // namespace widelimit
