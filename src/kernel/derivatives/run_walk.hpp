#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/derivatives/pair_sides.hpp"
#include "kernel/derivatives/tape_entry.hpp"
#include "kernel/derivatives/window_sums.hpp"
#include "kernel/planes/affine.hpp"

namespace widelimit {

/// The instructions of a plane step for one pair and one offset after the other, forth and back. What they were on the
/// way forth stays until the next offset, so that the way back finds it in the cache.
template <typename Scalar>
class RunWalk {
 public:
  /// Everything must outlive the walk. `kept`: of every node.
  RunWalk(const Program& program, const PairGeometry& geometry, std::size_t step,
          std::vector<KeptNode<Scalar>>& kept, bool with_ntk);

  /// A plane of the root: its offsets, and whether somebody reads it. Offset 0 comes first, and is there while inputs are
  /// recorded even if nobody does.
  struct RootPlane {
    PlaneOffsets offsets;
    bool is_demanded;
  };
  [[nodiscard]] const std::vector<RootPlane>& planes(bool recording) const {
    return recording ? recorded_planes_ : planes_;
  }

  /// Evaluates all instructions for a plane of the root; the last entry is the root.
  void forth(const PairSides<Scalar>& sides, const PlaneOffsets& offsets);

  /// Sets all adjoints of the offset that was last evaluated to 0.
  void begin_back();
  /// From root().adjoint() back to the adjoints of kept nodes and of what was recorded of the inputs.
  void back(const PairSides<Scalar>& sides);

  [[nodiscard]] TapeEntry<Scalar>& root() { return tape_.back(); }

 private:
  [[nodiscard]] const Node& node(std::size_t i) const {
    return program_.graph.nodes[run_.instructions[i].node];
  }
  [[nodiscard]] const Index3& left_sizes(std::size_t i) const {
    return geometry_.left_sizes[run_.instructions[i].node];
  }
  [[nodiscard]] const Index3& right_sizes(std::size_t i) const {
    return geometry_.right_sizes[run_.instructions[i].node];
  }
  [[nodiscard]] TapeEntry<Scalar>& input(std::size_t i, std::size_t k) {
    return tape_[run_.instructions[i].inputs[k]];
  }
  [[nodiscard]] std::vector<TapeEntry<Scalar>*> inputs(std::size_t i);
  [[nodiscard]] bool is_skipped(std::size_t i, bool recording) const;
  [[nodiscard]] bool is_diagonal(std::size_t i, const PairSides<Scalar>& sides) const {
    return sides.same_input && tape_[i].plane.is_diagonal;
  }

  void forth(std::size_t i, const PairSides<Scalar>& sides);
  void load(std::size_t i);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const InputNode& node);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const AffineNode& node);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const LocalAffineNode& node);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const RowNode& node);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const SumNode& node);
  void forth(std::size_t i, const PairSides<Scalar>& sides, const ProductNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides);
  void unload(std::size_t i);
  void back(std::size_t i, const PairSides<Scalar>& sides, const InputNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides, const AffineNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides, const LocalAffineNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides, const RowNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides, const SumNode& node);
  void back(std::size_t i, const PairSides<Scalar>& sides, const ProductNode& node);

  void record(std::size_t i, const PairSides<Scalar>& sides, const RowStage& stage);
  void pack(std::size_t i, const PairSides<Scalar>& sides, const RowStage& stage);
  void convolve(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to);
  void convolve_back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to);
  /// By shifted copies of whole planes, guards included, of what is given for the two kernels.
  void convolve_shifted(const Affine& affine, const PlaneLayout& layout, const Plane<Scalar>& source,
                        double bias, const Plane<Scalar>& target);
  void make_planes();
  /// Calls body(entry, entry of the kept input) for all that a circular convolution sums.
  template <typename Body>
  void for_each_wrapped(std::size_t i, const Affine& affine, const Body& body) const;
  /// The plane of a local convolution's kept input that becomes its diagonal.
  void load_diagonal(NodeId from, const Affine& affine);

  const Program& program_;
  const PairGeometry& geometry_;
  const Run& run_;
  const RunGeometry& run_geometry_;
  std::vector<KeptNode<Scalar>>& kept_;
  bool with_ntk_;
  std::vector<std::optional<Affine>> affine_;  ///< [instruction]
  std::vector<TapeEntry<Scalar>> tape_;        ///< [instruction]
  std::vector<RootPlane> planes_;
  std::vector<RootPlane> recorded_planes_;
  WindowSums<Scalar> windows_;
  TapeEntry<Scalar> local_;                    ///< Of load_diagonal().
  std::array<std::vector<Scalar>, 3> dense_;   ///< Planes without guards.
  std::array<GuardedRow<Scalar>, 2> scratch_;  ///< Of shifted copies.
  std::array<GuardedRow<Scalar>, 2> sums_;     ///< What they make.
  std::vector<Scalar> variances_;              ///< Adjoints of a plane's variances, left and right.
};

}  // namespace widelimit
