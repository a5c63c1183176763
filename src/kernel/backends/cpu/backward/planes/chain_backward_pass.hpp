#pragma once

#include <optional>
#include <vector>

#include "kernel/backends/cpu/backward/planes/convolution_adjoint.hpp"
#include "kernel/backends/cpu/backward/planes/kept_node.hpp"
#include "kernel/backends/cpu/backward/planes/side_planes.hpp"
#include "kernel/backends/cpu/backward/planes/tape_entry.hpp"
#include "kernel/backends/cpu/planes/entrywise_operations.hpp"
#include "kernel/backends/cpu/planes/interpreter.hpp"
#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/backends/cpu/planes/stacks.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// The instructions of a plane step, forward and backward, one offset after the other and stack by stack. What a
/// forward pass made stays until the next stack, so that the backward pass finds it in the cache.
///
/// Plan, placed planes, stacks, the interpreter and what acts on entries or windows are shared with the forward
/// engine (planes/plane_step_executor.hpp). The memory is not. The forward engine lets row stages work in place and
/// reuses slots; here, what the backward pass reads must stay (PlaneTape). The forward engine keeps only auxiliary
/// arrays of inputs and reads them in place; here, row stages read the variances as well, and adjoints are summed
/// up in the same layout (SidePlanes). Circular windows add each entry to the bias, whereas planes/convolutions.hpp
/// sums a window first, so that their bits differ.
template <typename Scalar>
class ChainBackwardPass {
 public:
  /// Everything must outlive the pass.
  ChainBackwardPass(const Program& program, const PairGeometry& geometry, std::size_t step,
                    BackwardScope scope);

  /// A plane of the root: its offsets, and whether something reads it. Offset 0 comes first. While inputs are
  /// recorded it is there even if nothing reads it.
  struct RootPlane {
    PlaneOffsets offsets;
    bool is_demanded;
  };
  [[nodiscard]] const std::vector<RootPlane>& planes(bool recording) const {
    return recording ? root_planes_.recorded : root_planes_.usual;
  }

  /// Begins with the pairs of a block. The block and its kept nodes must stay until end_block().
  void begin_block(const PairBlock<Scalar>& block, KeptNodes<Scalar>& kept);
  void end_block();

  /// Places all instructions for a plane of the root and cuts the pairs of the block into stacks of such planes.
  void begin_plane(const PlaneOffsets& offsets);
  void end_plane();
  [[nodiscard]] const PairStacks& stacks() const { return stacks_; }

  /// Evaluates all instructions for a stack; the last planes are the root's.
  void forward(const Stack& stack, const StopRequest& stop);

  /// Sets all adjoints to 0. It must follow forward().
  void begin_backward() { tape_.begin_backward(); }
  /// Returns where the whole adjoint of the root is to be written.
  [[nodiscard]] Plane<Scalar> begin_root() {
    root().has_adjoint = true;
    return root().adjoint;
  }
  /// Passes from the adjoint of the root to the adjoints of kept nodes and of the inputs' records.
  void backward(const StopRequest& stop);

  [[nodiscard]] TapePlanes<Scalar>& root() { return tape_.root(); }

  /// Whether so many entries of a pair of the block came near ties that float has too few digits of its derivatives:
  /// more than one in a thousand of those that steep stages passed backward.
  [[nodiscard]] bool is_near_ties() const;

  /// What interpret() calls.
  [[nodiscard]] bool skips(std::size_t i) const;
  void load(std::size_t i);
  void evaluate(std::size_t i, FeatureProduct part);
  void evaluate(std::size_t i, const AffineNumbers& numbers);
  void evaluate(std::size_t i, LocalWindows part);
  void evaluate(std::size_t i, const RowStage& stage);
  template <EntrywiseOperation Node>
  void evaluate(std::size_t i, const Node& node);
  void finish(std::size_t /*i*/) const {}

  /// What interpret_backward() calls.
  void begin(std::size_t i);
  void unload(std::size_t i);
  void propagate(std::size_t i, FeatureProduct part);
  void propagate(std::size_t i, const AffineNumbers& numbers);
  void propagate(std::size_t i, LocalWindows part);
  void propagate(std::size_t i, const RowStage& stage);
  template <EntrywiseOperation Node>
  void propagate(std::size_t i, const Node& node);

 private:
  using Planes = TapePlanes<Scalar>;

  [[nodiscard]] Planes& input(std::size_t i, std::size_t k) {
    return tape_[of_.chain.instructions[i].inputs[k]];
  }
  [[nodiscard]] bool is_diagonal(std::size_t i) const {
    return stack_->same_input && tape_[i].plane.is_diagonal;
  }
  [[nodiscard]] std::size_t size(const Planes& planes) const { return planes.size(stack_->count); }
  [[nodiscard]] const BlockInput<Scalar>& left(Index n = 0) const {
    return block_->left[static_cast<std::size_t>(stack_->left + n)];
  }
  /// Where the right inputs of the stack are among the planes of their side. If stacks have several pairs, right
  /// inputs are repeated after the last one, so that the diagonals of a block are consecutive.
  [[nodiscard]] Index right_place() const { return stacks_.has_many() ? stack_->right_place : stack_->right; }
  [[nodiscard]] KeptNode<Scalar>& kept(NodeId id, Index n) {
    return (*kept_)[static_cast<std::size_t>(stack_->first_pair + n)][id];
  }
  [[nodiscard]] std::array<Scalar*, 2> scratch() { return {tape_.scratch(0).nngp, tape_.scratch(1).nngp}; }
  /// Calls body(the pair's number in the stack, its plane) for all pairs.
  template <typename Body>
  void for_each_pair(const PlacedPlane& plane, const Plane<Scalar>& planes, const Body& body) {
    for (Index n = 0; n < stack_->count; ++n) body(n, planes + n * plane.layout.length);
  }
  /// Calls body(values, adjoints, count) for all planes of instruction i, if derivatives with respect to scalars are
  /// wanted. Gaps and guards are cleared first, because sums run over them. `values` are laid out like the
  /// instruction's planes.
  template <typename Body>
  void with_scalars(std::size_t i, const Plane<Scalar>& values, const Body& body);
  /// Calls body(target), which writes a contribution to the adjoint of `to`. The first contribution is written in
  /// place; later ones are written to a scratch row and added.
  template <typename Body>
  void give(Planes& to, const Body& body);

  void make_planes();
  void record(std::size_t i, const RowStage& stage);
  void propagate_stage(std::size_t i, const RowStage& stage);
  void count_entries(std::size_t i, const numerics::AdjointRow<Scalar>& entries);
  void add_variances(std::size_t i, const Scalar* adjoints);
  void sum_around(std::size_t i);
  void spread_around(std::size_t i);
  /// Evaluates a local convolution up to the stage that follows it.
  void sum_locally(std::size_t i);
  void spread_locally(std::size_t i);
  /// Loads the plane of a local convolution's kept input that becomes its diagonal, for pair n of the stack.
  void load_diagonal(std::size_t i, Index n, TapeEntry<Scalar>& diagonal);

  BackwardChain of_;
  std::vector<std::optional<Affine>> affine_;  ///< [instruction]
  PlaneTape<Scalar> tape_;
  /// Those of pairs, and of inputs that are recorded.
  struct RootPlanes {
    std::vector<RootPlane> usual;
    std::vector<RootPlane> recorded;
  };
  RootPlanes root_planes_;
  /// Entries of one pair that steep stages passed backward.
  struct SteepEntries {
    std::size_t all = 0;
    std::size_t near_ties = 0;
  };
  std::vector<SteepEntries> entries_;  ///< [pair of the block]
  const PairBlock<Scalar>* block_ = nullptr;
  KeptNodes<Scalar>* kept_ = nullptr;
  const Stack* stack_ = nullptr;
  PairStacks stacks_;
  SidePlanes<Scalar> left_planes_;
  SidePlanes<Scalar> right_planes_;
  ConvolutionAdjoint<Scalar> convolution_;
  StepTimer timer_;  ///< The interpreter's; nothing is measured.
};

template <typename Scalar>
template <typename Body>
void ChainBackwardPass<Scalar>::with_scalars(std::size_t i, const Plane<Scalar>& values, const Body& body) {
  if (block_->scalars == nullptr) return;
  const Planes& to = tape_[i];
  if (to.plane.empty()) return;
  for (const Plane<Scalar>& planes : {values, to.adjoint})
    clear_guards(to.plane.layout, stack_->count, planes);
  body(values, to.adjoint, size(to));
}

template <typename Scalar>
template <typename Body>
void ChainBackwardPass<Scalar>::give(Planes& to, const Body& body) {
  if (!to.has_adjoint) {
    to.has_adjoint = true;
    return body(to.adjoint);
  }
  const Plane<Scalar> given = tape_.scratch(2);
  body(given);
  const auto& rows = numerics::linear_rows<Scalar>();
  rows.add(given.nngp, Scalar{1}, to.adjoint.nngp, size(to));
  if (of_.with_ntk) rows.add(given.ntk, Scalar{1}, to.adjoint.ntk, size(to));
}

}  // namespace widelimit
