#pragma once

#include <optional>
#include <vector>

#include "kernel/derivatives/entrywise.hpp"
#include "kernel/derivatives/plane_convolution.hpp"
#include "kernel/derivatives/side_planes.hpp"

namespace widelimit {

/// The instructions of a plane step, one offset after the other and pair by pair, forth and back. What they were on the
/// way forth stays until the next pair, so that the way back finds it in the cache.
template <typename Scalar>
class RunWalk {
 public:
  /// Everything must outlive the walk.
  RunWalk(const Program& program, const PairGeometry& geometry, std::size_t step, bool with_ntk);

  /// A plane of the root: its offsets, and whether somebody reads it. Offset 0 comes first, and is there while inputs are
  /// recorded even if nobody does.
  struct RootPlane {
    PlaneOffsets offsets;
    bool is_demanded;
  };
  [[nodiscard]] const std::vector<RootPlane>& planes(bool recording) const {
    return recording ? recorded_planes_ : planes_;
  }

  /// Places all instructions for a plane of the root, of all pairs of the block, which must stay until end_plane().
  void begin_plane(const PairBlock<Scalar>& block, const PlaneOffsets& offsets);
  void end_plane();

  /// Evaluates all instructions for a pair; the last entry is the root. `kept`: of every node of the pair; it must stay
  /// until back().
  void forth(std::size_t pair, std::vector<KeptNode<Scalar>>& kept);

  /// Sets all adjoints of the pair that was last evaluated to 0.
  void begin_back();
  /// From root().adjoint() back to the adjoints of kept nodes and of what was recorded of the inputs.
  void back();

  [[nodiscard]] TapeEntry<Scalar>& root() { return tape_.back(); }

 private:
  /// What is being evaluated.
  struct Current {
    const PairBlock<Scalar>* block;
    std::size_t pair;
    std::vector<KeptNode<Scalar>>* kept;
  };

  [[nodiscard]] TapeEntry<Scalar>& input(std::size_t i, std::size_t k) {
    return tape_[of_.run.instructions[i].inputs[k]];
  }
  [[nodiscard]] TapeInputs<Scalar> inputs(std::size_t i);
  [[nodiscard]] bool is_skipped(std::size_t i) const;
  [[nodiscard]] bool is_diagonal(std::size_t i) const {
    return now_.block->pairs[now_.pair].same_input && tape_[i].plane.is_diagonal;
  }
  [[nodiscard]] const BlockInput<Scalar>& left() const { return now_.block->left_of(now_.pair); }
  [[nodiscard]] const BlockInput<Scalar>& right() const { return now_.block->right_of(now_.pair); }
  [[nodiscard]] KeptNode<Scalar>& kept(NodeId id) { return (*now_.kept)[id]; }

  void evaluate(std::size_t i);
  void load(std::size_t i);
  void evaluate(std::size_t i, const InputNode& node);
  void evaluate(std::size_t i, const AffineNode& node);
  void evaluate(std::size_t i, const LocalAffineNode& node);
  void evaluate(std::size_t i, const RowNode& node);
  void evaluate(std::size_t i, const SumNode& node);
  void evaluate(std::size_t i, const ProductNode& node);
  void go_back(std::size_t i);
  void unload(std::size_t i);
  void go_back(std::size_t i, const InputNode& node);
  void go_back(std::size_t i, const AffineNode& node);
  void go_back(std::size_t i, const LocalAffineNode& node);
  void go_back(std::size_t i, const RowNode& node);
  void go_back(std::size_t i, const SumNode& node);
  void go_back(std::size_t i, const ProductNode& node);

  void make_planes();
  void record(std::size_t i);
  [[nodiscard]] PackedArrays<Scalar> packed(std::size_t i, const RowStage& stage);
  void stage_back(std::size_t i, const RowStage& stage);
  void add_variances(std::size_t i, const Scalar* adjoints);
  void sum_locally(std::size_t i, const LocalAffineNode& local);
  /// The plane of a local convolution's kept input that becomes its diagonal.
  [[nodiscard]] TapeEntry<Scalar> diagonal_in_front(std::size_t i);

  WalkedRun of_;
  std::vector<std::optional<Affine>> affine_;  ///< [instruction]
  std::vector<TapeEntry<Scalar>> tape_;        ///< [instruction]
  std::vector<RootPlane> planes_;
  std::vector<RootPlane> recorded_planes_;
  Current now_{};
  SidePlanes<Scalar> left_planes_;
  SidePlanes<Scalar> right_planes_;
  PlaneConvolution<Scalar> convolution_;
  std::vector<Scalar> variances_;  ///< Adjoints of a plane's variances, left and right.
};

}  // namespace widelimit
