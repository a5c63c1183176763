#include "kernel/backends/device/scalar_source.hpp"

#include <algorithm>

#include "kernel/inputs/multiples.hpp"

namespace widelimit {
namespace {

/// The packed numbers of an input: all auxiliary numbers of row stages, in the order of the instructions.
class PackedNumbers {
 public:
  PackedNumbers(const Program& program, const StateLayout& state) : first_(program.graph.nodes.size(), -1) {
    for (const Instruction& instruction : program.pair_rows.instructions) {
      const NodeId node = instruction.node;
      if (recorded_of(program.graph.nodes[node].operation) != Recorded::auxiliaries) continue;
      first_[node] = static_cast<Index>(places_.size());
      for (Index k = 0; k < state.arrays[node]; ++k)
        places_.push_back(state.offset[node] + k * state.positions[node]);
    }
  }

  [[nodiscard]] Index packed(NodeId node, std::size_t k) const {
    return first_[node] + static_cast<Index>(k);
  }
  [[nodiscard]] const std::vector<Index>& places() const { return places_; }

 private:
  std::vector<Index> first_;  ///< [node]
  std::vector<Index> places_;
};

std::string reason_of(const Operation& operation) {
  if (const RowStage* row = row_stage_of(operation))
    return has_source(*row) && prepares_entries(*row) ? "" : "a formula that devices cannot read";
  if (feature_stage_of(operation) != nullptr) return "linear layers that are applied to the inputs";
  if (pair_stage_of(operation) != nullptr) return "covariances that are needed as a whole";
  return "";
}

}  // namespace

ScalarSource::ScalarSource(const Program& program, const StateLayout& state,
                           const ScalarSourceOptions& options) {
  const PackedNumbers packed(program, state);
  numbers_ = packed.places();
  const auto& instructions = program.pair_rows.instructions;
  EntrySource entries(program, options.precision, options.kernel, options.records,
                      {.value = [](std::size_t i, char kernel) { return fmt::format("{}{}", kernel, i); },
                       .number =
                           [&](EntrySource::Side side, NodeId node, std::size_t k) {
                             const bool left = side == EntrySource::Side::left;
                             return fmt::format("{}[{} * {}]", left ? "left" : "right",
                                                packed.packed(node, k),
                                                left ? options.stride : options.right_stride);
                           },
                       .same = "same",
                       .multiples = "multiples"});
  const std::vector<bool> keeps = keeps_multiples(program.graph);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Node& node = program.graph.nodes[instructions[i].node];
    written_for(node.path, [&] { write(entries, i, instructions[i], node, keeps); });
  }
  text_ = entries.take();
  nngp_ = fmt::format("k{}", instructions.size() - 1);
  ntk_ = fmt::format("t{}", instructions.size() - 1);
}

void ScalarSource::write(EntrySource& entries, std::size_t i, const Instruction& instruction,
                         const Node& node, const std::vector<bool>& keeps) {
  if (const auto* affine = std::get_if<AffineNode>(&node.operation)) {
    const std::size_t input = instruction.inputs[0];
    entries.declare(i, fmt::format("k{}", input), fmt::format("t{}", input));
    entries.write_affine(i, affine->weight_variance, affine->bias_variance,
                         affine->weights == AffineNode::Weights::trained);
  } else if (multiplies_features(node.operation)) {
    // Inputs have no parameters before them.
    entries.declare(i, fmt::format("source_k{}", sources_.size()), "0");
    sources_.push_back(instruction.node);
  } else if (entries.write(i, instruction, node.operation, keeps[node.inputs[0]])) {
    reads_multiples_ = true;
  }
}

std::vector<DeviceGap> scalar_gaps(const Program& program) {
  std::vector<DeviceGap> gaps;
  for (const Instruction& instruction : program.pair_rows.instructions) {
    const Node& node = program.graph.nodes[instruction.node];
    std::string reason = reason_of(node.operation);
    if (!reason.empty()) gaps.push_back({node.path, std::move(reason)});
  }
  return gaps;
}

}  // namespace widelimit
