#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/pair_view.hpp"
#include "kernel/plan/program.hpp"

namespace widelimit {

class InputGraph;

/// Where the parts of an input's record are in memory. An input node with positions has its features there,
/// [channel][position]; a row stage the variances before it, followed by its auxiliary arrays, [array][position]; a
/// pair stage the variances before it, followed by its own state.
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

/// The layout for inputs of a shape, where `shapes` are those after all nodes.
[[nodiscard]] RecordLayout make_record_layout(const Program& program, const std::vector<Shape>& shapes,
                                              const Shape& input, Index channels);

/// What pairs read of one input. Its own forward pass fills it; features are there from the beginning.
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

/// Fills the auxiliary arrays of a row stage from the variances before it, which the record must already contain.
/// Throws NumericalError for variances that leave the range.
template <typename Scalar>
void prepare_row_stage(InputRecord<Scalar>& record, NodeId id, const RowStage& stage);

/// The adjoints of one input's record, summed over its pairs. Auxiliary arrays have none: they are functions of the
/// variances, and stages give the adjoints of these directly.
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
