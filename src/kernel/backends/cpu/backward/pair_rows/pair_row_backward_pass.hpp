#pragma once

#include <span>
#include <vector>

#include "kernel/backends/cpu/backward/planes/input_record.hpp"
#include "kernel/backends/cpu/backward/planes/scalar_adjoints.hpp"
#include "kernel/backends/cpu/backward/planes/tape_entry.hpp"
#include "kernel/backends/cpu/planes/entrywise_operations.hpp"
#include "kernel/backends/cpu/planes/interpreter.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// Evaluates what comes after the positions, forward and backward, for rows of pairs: one left input with all right
/// inputs of a tile. TileBackwardPass has one for pairs, and one for inputs with themselves.
///
/// The interpreter and what acts on entries are shared with the forward engine (pair_rows/pair_row_evaluator.hpp). The
/// memory is not: the forward engine lets several left inputs share a vector and reuses slots, while here everything
/// that the backward pass reads must stay. The forward engine also treats multiples of an input apart; here they are
/// pairs like others.
template <typename Scalar>
class PairRowBackwardPass {
 public:
  /// Program and steep_nodes() must outlive the pass; entries near ties are not looked for if the latter are null.
  PairRowBackwardPass(const Program& program, bool with_ntk, const std::vector<bool>* steep = nullptr);

  /// The instructions whose values come from elsewhere: readouts, and inputs that are vectors.
  [[nodiscard]] const std::vector<std::size_t>& sources() const { return sources_; }
  [[nodiscard]] NodeId node_of(std::size_t instruction) const {
    return program_.pair_rows.instructions[instruction].node;
  }
  /// True if the backward pass reads no values of the forward pass.
  [[nodiscard]] bool is_linear() const { return is_linear_; }

  /// Sets the right inputs of the rows to come. end_tile() adds what all rows gave to their adjoints.
  void begin_tile(std::span<InputRecord<Scalar>* const> right);
  void end_tile(std::span<RecordAdjoint<Scalar>* const> right);

  /// The values of an instruction for the current row, and their adjoints. Those of sources are set by the caller.
  [[nodiscard]] TapeEntry<Scalar>& entry(std::size_t instruction) { return tape_[instruction]; }
  [[nodiscard]] TapeEntry<Scalar>& result() { return tape_.back(); }

  /// A left input with the right inputs of the tile.
  struct Row {
    InputRecord<Scalar>* left;
    RecordAdjoint<Scalar>* left_adjoint = nullptr;  ///< Null until the backward pass.
    Index same = -1;                                ///< The place of the left input itself in the row, or -1.
    bool recording = false;  ///< What pairs need of the left input is recorded: it is alone, with itself.
    StopRequest stop = {};
  };

  /// Computes the values of all instructions, from the sources to the result.
  void forward(const Row& row);

  /// Sets where backward() adds derivatives with respect to scalars; null, as at first, if they are not wanted.
  void sum_scalars(ScalarAdjoints* scalars) { scalars_ = scalars; }

  /// Callers call begin_backward(), set result()'s adjoint, and call backward(). It adds to the adjoints of the
  /// sources and of what is recorded of the inputs.
  void begin_backward();
  void backward(const Row& row);

  /// Whether backward() met a pair, of those on which L depends, that is too near a tie for float: see tie_distance.
  [[nodiscard]] bool is_near_ties() const { return ties_.found; }

  /// What interpret() calls.
  [[nodiscard]] bool skips(std::size_t /*i*/) const { return false; }
  void load(std::size_t /*i*/) const {}
  void evaluate(std::size_t /*i*/, FeatureProduct /*part*/) const {}
  void evaluate(std::size_t i, const AffineNumbers& numbers);
  void evaluate(std::size_t i, const RowStage& stage);
  void evaluate(std::size_t i, const PairStage& stage);
  template <EntrywiseOperation Node>
  void evaluate(std::size_t i, const Node& node);
  void finish(std::size_t /*i*/) const {}

  /// What interpret_backward() calls.
  void begin(std::size_t /*i*/) const {}
  void unload(std::size_t /*i*/) const {}
  void propagate(std::size_t /*i*/, FeatureProduct /*part*/) const {}
  void propagate(std::size_t i, const AffineNumbers& numbers);
  void propagate(std::size_t i, const RowStage& stage);
  void propagate(std::size_t i, const PairStage& stage);
  template <EntrywiseOperation Node>
  void propagate(std::size_t i, const Node& node);

 private:
  /// What a row or pair stage reads of the inputs of a row, and the adjoints of the right inputs' variances and
  /// states.
  struct StageArrays {
    std::vector<Scalar> left_values;  ///< [auxiliaries + 1][columns], each repeated along a row.
    std::vector<Scalar> values;       ///< [auxiliaries + 1][columns], the variances last.
    std::vector<Scalar> variance_adjoints;
    std::vector<Scalar> state_adjoints;  ///< [columns][state size]
  };

  [[nodiscard]] const Operation& operation(std::size_t i) const {
    return program_.graph.nodes[node_of(i)].operation;
  }
  [[nodiscard]] std::vector<TapeEntry<Scalar>*> inputs(std::size_t i);
  void look_for_ties(std::size_t i, const numerics::AdjointRow<Scalar>& entries);
  void take_values(std::size_t i, std::size_t column, InputRecord<Scalar>& input);
  /// Records what pairs will need of the left input at a stage.
  void record(std::size_t i, const RowStage& stage);
  void record(std::size_t i, const PairStage& stage);
  /// Passes the adjoint of a pair stage's state, to which all pairs and the recorded row have contributed, on to the
  /// variance of which the state was made.
  void propagate_record(std::size_t i, const PairStage& stage);
  [[nodiscard]] PairView<Scalar> view(std::size_t i, std::size_t column);

  const Program& program_;
  bool with_ntk_;
  /// Which stages are steep, by node, null if ties are not looked for; and whether one met a tie.
  struct Ties {
    const std::vector<bool>* steep;
    bool found = false;
  };
  Ties ties_;
  bool is_linear_ = true;
  std::vector<std::size_t> sources_;
  std::vector<InputRecord<Scalar>*> right_;
  std::vector<TapeEntry<Scalar>> tape_;  ///< [instruction]
  std::vector<StageArrays> arrays_;      ///< [instruction]
  std::vector<Scalar> variances_;        ///< Adjoints of a row's variances, left and right.
  std::vector<Scalar> scratch_;          ///< Memory that a pair stage asks for.
  ScalarAdjoints* scalars_ = nullptr;
  Row row_{nullptr};  ///< The current one.
  StepTimer timer_;   ///< The interpreter's; nothing is measured.
};

}  // namespace widelimit
