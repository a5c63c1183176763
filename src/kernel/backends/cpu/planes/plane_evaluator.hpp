#pragma once

#include <algorithm>
#include <vector>

#include "kernel/backends/cpu/planes/convolutions.hpp"
#include "kernel/backends/cpu/planes/entrywise_operations.hpp"
#include "kernel/backends/cpu/planes/instructions.hpp"
#include "kernel/backends/cpu/planes/interpreter.hpp"
#include "kernel/backends/cpu/planes/placed_instruction.hpp"
#include "kernel/backends/cpu/planes/product_blocks.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"
#include "kernel/range/vanishing_check.hpp"

namespace widelimit {

/// Evaluates the instructions of a chain for a stack of planes, as interpret() asks for them. One is made for each
/// stack.
template <typename Scalar>
class PlaneEvaluator {
 public:
  /// `blocks` makes products of inputs in blocks; it is null if they are made pair by pair. Everything must outlive
  /// the evaluator.
  PlaneEvaluator(const TileWork<Scalar>& work, std::vector<PlacedInstruction<Scalar>>& placed,
                 ProductBlocks<Scalar>* blocks, const Stack& stack)
      : work_{work}, placed_{placed}, blocks_{blocks}, stack_{stack} {}

  /// True for planes without positions. While states are recorded, row stages are visited even if their result is not
  /// demanded, since they record variances.
  [[nodiscard]] bool skips(std::size_t i) const {
    if (placed_[i].at().empty()) return true;
    const Instruction& instruction = *placed_[i].instruction;
    if (!work_.recording() || !work_.pair.geometry.demanded[instruction.node].empty()) return false;
    return instruction.loads || !needs_variances(work_.pair.node(instruction.node).operation);
  }

  void load(std::size_t i) {
    work_.stores.load(placed_[i].instruction->node, placed_[i].at(), stack_.first_pair, stack_.count,
                      placed_[i].planes);
  }

  void evaluate(std::size_t i, FeatureProduct /*part*/) {
    PlacedInstruction<Scalar>& placed = placed_[i];
    // While offset 0 of an input with itself is evaluated, its arrays are only being made, instruction by
    // instruction; place_arrays() could not pack them before.
    if (work_.recording() && placed.at().is_diagonal) placed.arrays->pack(placed.at());
    if (blocks_ != nullptr)
      placed.planes = blocks_->product(placed, stack_);
    else
      multiply_features(placed, stack_.count);
  }

  void evaluate(std::size_t i, const AffineNumbers& /*numbers*/) {
    if (placed_[i].affine->kind == AffineKind::circular) return convolve_kept(i, convolve_around<Scalar>);
    convolve(input_of(i, 0), placed_[i], stack_.count,
             {work_.workspace.scratch(0).nngp, work_.workspace.scratch(1).nngp});
  }

  void evaluate(std::size_t i, LocalWindows /*part*/) { convolve_kept(i, convolve_locally<Scalar>); }

  void evaluate(std::size_t i, const RowStage& stage) {
    PlacedInstruction<Scalar>& placed = placed_[i];
    const Plane<Scalar> source = input_of(i, 0).planes;
    if (work_.recording()) {
      if (placed.at().is_diagonal) record_row_state(stage, source, placed, *work_.recorded);
      if (work_.pair.geometry.demanded[placed.instruction->node].empty()) return;
      if (placed.at().is_diagonal) placed.arrays->pack(placed.at());
    }
    apply_row_stage(stage, source, placed, stack_);
  }

  template <EntrywiseOperation Node>
  void evaluate(std::size_t i, const Node& node) {
    evaluate_entries(
        node, [&](std::size_t k) { return input_of(i, k).planes; }, placed_[i].instruction->inputs.size(),
        placed_[i].row_size(stack_.count), placed_[i].planes);
  }

  template <typename Other>
  void evaluate(std::size_t i, const Other& /*node*/) {
    throw_no_instruction(*placed_[i].instruction);
  }

  void finish(std::size_t i) {
    const NodeId node = placed_[i].instruction->node;
    // Variances and the input's own NTK are checked while states are made. Row stages whose result nothing reads were
    // not evaluated.
    if (!work_.recording() || !placed_[i].at().is_diagonal || work_.pair.geometry.demanded[node].empty())
      return;
    vanishing_.note(i, *placed_[i].instruction, work_.pair.node(node).operation, positive_variances(i));
    const PlaneLayout& layout = placed_[i].at().layout;
    if (const Scalar* ntk = placed_[i].result().ntk; ntk != nullptr)
      for_each_row(layout.extent,
                   [&](Index x, Index y) { check_ntk(ntk + layout.at(x, y), layout.extent[2]); });
  }

 private:
  [[nodiscard]] Positive positive_variances(std::size_t i) const {
    const PlaneLayout& layout = placed_[i].at().layout;
    Index count = 0;
    for_each_row(layout.extent, [&](Index x, Index y) {
      const Scalar* row = placed_[i].planes.nngp + layout.at(x, y);
      for (Index z = 0; z < layout.extent[2]; ++z) count += row[z] > 0 ? 1 : 0;
    });
    return count == 0 ? Positive::none : count == product(layout.extent) ? Positive::all : Positive::some;
  }

  [[nodiscard]] const PlacedInstruction<Scalar>& input_of(std::size_t i, std::size_t k) const {
    return placed_[placed_[i].instruction->inputs[k]];
  }

  /// Convolves a kept input for each pair of the stack.
  template <typename Convolve>
  void convolve_kept(std::size_t i, const Convolve& convolve_pair) {
    const PlacedInstruction<Scalar>& placed = placed_[i];
    const NodeId input = work_.pair.input_of(placed.instruction->node);
    for (Index n = 0; n < stack_.count; ++n)
      convolve_pair(work_, input, placed, stack_.first_pair + n,
                    placed.planes + n * placed.at().layout.length);
  }

  const TileWork<Scalar>& work_;
  std::vector<PlacedInstruction<Scalar>>& placed_;
  ProductBlocks<Scalar>* blocks_;
  const Stack& stack_;
  VanishingCheck<Scalar> vanishing_;
};

}  // namespace widelimit
