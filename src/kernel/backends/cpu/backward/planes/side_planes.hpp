#pragma once

#include <vector>

#include "kernel/backends/cpu/backward/planes/input_record.hpp"
#include "kernel/backends/cpu/backward/planes/plane_tape.hpp"
#include "kernel/backends/cpu/backward/planes/scalar_adjoints.hpp"
#include "kernel/backends/cpu/planes/tile.hpp"

namespace widelimit {

/// An input of a block of pairs, and where the adjoints of what is recorded of it are summed up.
template <typename Scalar>
struct BlockInput {
  InputRecord<Scalar>* record;
  RecordAdjoint<Scalar>* adjoint;
};

/// Pairs of a few left inputs of one shape with a few right inputs of one shape. They share the arrays that are
/// packed into the order of a plane.
template <typename Scalar>
struct PairBlock {
  std::vector<BlockInput<Scalar>> left;
  std::vector<BlockInput<Scalar>> right;
  /// The pairs, best in the order of for_each_pair(), so that stacks are long. For an input with itself, covariances
  /// at offset 0 are variances.
  std::vector<TilePair> pairs;
  /// True for a block of one input with itself. Its forward pass records variances and states, and their adjoints
  /// join in on its backward pass.
  bool recording = false;
  /// Whether the adjoints of a side's features and variances are summed up.
  bool left_wanted = true;
  bool right_wanted = true;
  ScalarAdjoints* scalars = nullptr;  ///< Null if derivatives with respect to scalars are not wanted.

  [[nodiscard]] const BlockInput<Scalar>& left_of(std::size_t pair) const {
    return left[static_cast<std::size_t>(pairs[pair].left)];
  }
  [[nodiscard]] const BlockInput<Scalar>& right_of(std::size_t pair) const {
    return right[static_cast<std::size_t>(pairs[pair].right)];
  }
};

enum class PairSide { left, right };

/// What instructions of a chain read of the inputs of one side of a block, in the order of the planes of an offset:
/// features, or the auxiliary arrays of a row stage and the variances before it. It also sums up the adjoints of
/// features and variances in the same order. All pairs of an input share both.
///
/// As in the forward engine, rows are cut to the columns of a plane once for all offsets that agree along the last
/// axis (strips). A plane consists of a few parts of a strip, and its adjoints are added to the adjoints of the
/// strip.
template <typename Scalar>
class SidePlanes {
 public:
  /// The chain must outlive this.
  SidePlanes(PairSide side, const BackwardChain& chain)
      : side_{side}, chain_{chain}, stages_(chain.chain.instructions.size()) {}

  /// Sets the inputs whose planes are read. They must stay until flush().
  void begin_block(const std::vector<BlockInput<Scalar>>& inputs);
  /// The planes of the tape are those of the next offset, and `columns` are the offsets along the last axis. Stacks
  /// read inputs one after the other; inputs are repeated until there are `places` of them.
  void begin_plane(const PlaneTape<Scalar>& tape, const AxisOffsets& columns, Index places);

  /// Pointers [array] to the planes of the input at a place, followed by those of the next places: features, or
  /// auxiliary arrays and then the variances. They are valid until the next call.
  [[nodiscard]] const Scalar* const* arrays(std::size_t instruction, Index place);

  /// Adds the adjoints that a stack of `count` planes, beginning at a place, gives to array k (features) or to the
  /// variances (k = 0).
  void add(std::size_t instruction, Index k, Index place, Index count, const Scalar* adjoints);

  /// Adds what stacks gave to the adjoints of strips. Planes that are not stacked add to them at once.
  void end_plane();
  /// Adds the adjoints of strips to the inputs' records.
  void flush();

 private:
  /// The arrays of one instruction.
  struct StagePlanes {
    Index arrays = 0;                            ///< Arrays of each input.
    Index adjoint_arrays = 0;                    ///< Arrays with adjoints: all features, or the variances.
    AxisPieces columns;                          ///< The columns for which strips are cut.
    Index stride = 0;                            ///< Numbers from row to row of strips and planes.
    Index length = 0;                            ///< The length of a plane, guards included.
    std::vector<Scalar> strips, strip_adjoints;  ///< [array][input][rows]
    std::vector<Scalar> planes, plane_adjoints;  ///< [array][place][length]
    bool has_strips = false, has_strip_adjoints = false;
    bool has_planes = false, has_plane_adjoints = false;
    /// True if the first auxiliary array equals the variances, which then need no array of their own.
    bool shares_variances = false;
  };

  [[nodiscard]] const Index3& sizes(std::size_t instruction) const {
    return side_ == PairSide::left ? chain_.left_sizes(instruction) : chain_.right_sizes(instruction);
  }
  [[nodiscard]] Index rows(std::size_t instruction) const {
    return sizes(instruction)[0] * sizes(instruction)[1];
  }
  [[nodiscard]] Index inputs() const { return static_cast<Index>(inputs_->size()); }
  [[nodiscard]] Index origin(const AxisPieces& axis, std::size_t piece) const {
    return axis.origin[piece] + (side_ == PairSide::right ? axis.offset[piece] : Index{0});
  }
  [[nodiscard]] Scalar* recorded(std::size_t instruction, Index k, InputRecord<Scalar>& record) const;
  [[nodiscard]] Scalar* recorded_adjoint(std::size_t instruction, Index k,
                                         RecordAdjoint<Scalar>& adjoint) const;
  template <typename Body>
  void for_each_piece_of_strip(std::size_t instruction, const Body& body) const;
  template <typename Body>
  void for_each_part(std::size_t instruction, const Body& body) const;
  void count_arrays(std::size_t instruction);
  [[nodiscard]] bool shares_variances(std::size_t instruction) const;
  void add_to_strip(std::size_t instruction, Index k, Index place, const Scalar* adjoints);
  void cut(std::size_t instruction);
  void pack(std::size_t instruction);

  PairSide side_;
  const BackwardChain& chain_;
  std::vector<StagePlanes> stages_;  ///< [instruction]
  const std::vector<BlockInput<Scalar>>* inputs_ = nullptr;
  const PlaneTape<Scalar>* tape_ = nullptr;
  AxisOffsets columns_{{0, 0}, 0};  ///< Offsets of the root along the last axis.
  Index places_ = 0;
  std::vector<const Scalar*> pointers_;
};

}  // namespace widelimit
