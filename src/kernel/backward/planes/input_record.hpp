#pragma once

#include <vector>

#include "kernel/pair_view.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

class InputGraph;

/// Where the things recorded of one input lie: for an input node with positions the features, channel by channel; for a
/// row stage the variances before it and its auxiliary arrays; for a pair stage the variances and its own state.
/// Positions of an array lie one after the other.
struct RecordLayout {
  std::vector<Index> positions;    ///< [node], before stages; of input nodes, after their transforms.
  std::vector<Index> channels;     ///< [node], of input nodes.
  std::vector<Index> auxiliaries;  ///< [node], of row stages.
  std::vector<Index> states;       ///< [node], numbers of a pair stage's own state.
  /// [node], where its numbers begin: features or variances, then auxiliaries or state.
  std::vector<Index> values;
  std::vector<Index> adjoints;  ///< [node], where their adjoints begin: of all but auxiliaries.
  Index value_count = 0;
  Index adjoint_count = 0;
};

/// For inputs of a shape; `shapes`: after all nodes.
[[nodiscard]] RecordLayout make_record_layout(const Program& program, const std::vector<Shape>& shapes,
                                              const Shape& input, Index channels);

/// What pairs read of an input.
template <typename Scalar>
struct InputRecord {
  const RecordLayout* layout;
  std::vector<Scalar> values;
  const PositionMask* mask = nullptr;
  const InputGraph* graph = nullptr;

  explicit InputRecord(const RecordLayout& of_shape)
      : layout{&of_shape}, values(static_cast<std::size_t>(of_shape.value_count)) {}

  /// [positions] of a channel.
  [[nodiscard]] Scalar* features(NodeId node, Index channel) {
    return values.data() + layout->values[node] + channel * layout->positions[node];
  }
  [[nodiscard]] Scalar* variances(NodeId node) { return values.data() + layout->values[node]; }
  [[nodiscard]] Scalar* auxiliary(NodeId node, Index k) {
    return variances(node) + (1 + k) * layout->positions[node];
  }
  [[nodiscard]] Scalar* state(NodeId node) { return variances(node) + layout->positions[node]; }
};

template <typename Scalar>
StageInput<Scalar> stage_input(NodeId stage, InputRecord<Scalar>& input, const Shape& shape) {
  return {input.variances(stage), input.state(stage), shape, input.graph};
}

/// Fills the auxiliary arrays of a row stage from the variances before it, which stand in the record. Throws
/// NumericalError for variances that leave the range.
template <typename Scalar>
void prepare_row_stage(InputRecord<Scalar>& record, NodeId id, const RowStage& stage);

/// The adjoints of what was recorded of an input, summed over its pairs; auxiliary arrays have none.
template <typename Scalar>
struct RecordAdjoint {
  const RecordLayout* layout;
  std::vector<Scalar> values;

  explicit RecordAdjoint(const RecordLayout& of_shape)
      : layout{&of_shape}, values(static_cast<std::size_t>(of_shape.adjoint_count)) {}

  [[nodiscard]] Scalar* features(NodeId node, Index channel) {
    return values.data() + layout->adjoints[node] + channel * layout->positions[node];
  }
  [[nodiscard]] Scalar* variances(NodeId node) { return values.data() + layout->adjoints[node]; }
  [[nodiscard]] Scalar* state(NodeId node) { return variances(node) + layout->positions[node]; }
};

}  // namespace widelimit
