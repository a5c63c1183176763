#pragma once

#include <span>
#include <vector>

#include "kernel/derivatives/input_record.hpp"
#include "kernel/derivatives/scalar_adjoints.hpp"
#include "kernel/derivatives/tape_entry.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// What comes after the positions, on rows of pairs: one left input with all right inputs of a tile.
template <typename Scalar>
class PointWalk {
 public:
  /// The program must outlive the walk.
  PointWalk(const Program& program, bool with_ntk);

  /// Instructions whose values come from elsewhere: readouts, and inputs that are vectors.
  [[nodiscard]] const std::vector<std::size_t>& sources() const { return sources_; }
  [[nodiscard]] NodeId node_of(std::size_t instruction) const {
    return program_.points.instructions[instruction].node;
  }
  /// True if the backward pass reads none of the values.
  [[nodiscard]] bool is_linear() const { return is_linear_; }

  /// The right inputs of the rows to come. Their adjoints are written by end_tile().
  void begin_tile(std::span<InputRecord<Scalar>* const> right);
  void end_tile(std::span<RecordAdjoint<Scalar>* const> right);

  /// What an instruction made of the row, or sources were set to; and the adjoints.
  [[nodiscard]] TapeEntry<Scalar>& entry(std::size_t instruction) { return tape_[instruction]; }
  [[nodiscard]] TapeEntry<Scalar>& result() { return tape_.back(); }

  /// From the sources to the result. `same`: the place of the left input itself in the row, or -1. While inputs are
  /// recorded the row is the left input with itself alone.
  void forth(InputRecord<Scalar>& left, Index same, bool recording, const StopRequest& stop);

  /// Where back() adds derivatives by scalars from now on; null, as at first: nowhere.
  void sum_scalars(ScalarAdjoints* scalars) { scalars_ = scalars; }

  /// From result()'s adjoint, set behind begin_back(), to those of the sources and of what is recorded of the inputs.
  void begin_back();
  void back(InputRecord<Scalar>& left, RecordAdjoint<Scalar>& left_adjoint, Index same, bool recording,
            const StopRequest& stop);

 private:
  /// Of row and pair stages: what they read of the inputs, and the adjoints of the right ones' variances and states.
  struct StageArrays {
    std::vector<Scalar> left_values;  ///< The left input's, as often as there are columns.
    std::vector<Scalar> values;       ///< [auxiliaries + 1][columns], the variances last.
    std::vector<Scalar> variance_adjoints;
    std::vector<Scalar> state_adjoints;  ///< [columns][state size]
  };

  [[nodiscard]] const Operation& operation(std::size_t i) const {
    return program_.graph.nodes[node_of(i)].operation;
  }
  [[nodiscard]] std::vector<TapeEntry<Scalar>*> inputs(std::size_t i);
  void take_values(std::size_t i, std::size_t column, InputRecord<Scalar>& input);
  void record(std::size_t i, InputRecord<Scalar>& left);
  void row_forth(std::size_t i, InputRecord<Scalar>& left, Index same, const RowStage& stage);
  void row_back(std::size_t i, RecordAdjoint<Scalar>& left_adjoint, Index same, bool recording,
                const RowStage& stage);
  [[nodiscard]] PairView<Scalar> view(std::size_t i, InputRecord<Scalar>& left, std::size_t column, bool same,
                                      const StopRequest& stop);
  void pair_forth(std::size_t i, InputRecord<Scalar>& left, Index same, bool recording,
                  const PairStage& stage, const StopRequest& stop);
  void pair_back(std::size_t i, InputRecord<Scalar>& left, RecordAdjoint<Scalar>& left_adjoint, Index same,
                 bool recording, const PairStage& stage, const StopRequest& stop);

  const Program& program_;
  bool with_ntk_;
  bool is_linear_ = true;
  std::vector<std::size_t> sources_;
  std::span<InputRecord<Scalar>* const> right_;
  std::vector<TapeEntry<Scalar>> tape_;  ///< [instruction]
  std::vector<StageArrays> arrays_;      ///< [instruction]
  std::vector<Scalar> variances_;        ///< Adjoints of a row's variances, left and right.
  std::vector<Scalar> scratch_;          ///< Of a pair stage.
  ScalarAdjoints* scalars_ = nullptr;
  Shape no_positions_;
};

}  // namespace widelimit
