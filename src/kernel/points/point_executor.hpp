#pragma once

#include <span>
#include <vector>

#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"
#include "kernel/planes/aligned_buffer.hpp"
#include "kernel/planes/input_state.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "kernel/step_timer.hpp"

namespace widelimit {

/// A left input of a tile, and what is known of it and the right inputs.
template <typename Scalar>
struct PointRow {
  const InputState<Scalar>* left;
  Index same;                    ///< Its index among the right inputs, or -1.
  std::vector<Index> multiples;  ///< Indices of right inputs that are multiples of it, not itself.
};

/// Executes what comes behind the positions, or a network that never had any: one number a pair. A vector is
/// some rows of the tile, one behind the other: left inputs, each with all right inputs.
template <typename Scalar>
class PointExecutor {
 public:
  /// The program must outlive the executor. Tiles have at most `rows` left and `columns` right inputs.
  /// `state` is the layout of any input: behind the positions all are alike.
  PointExecutor(const Program& program, const StateLayout& state, Kernel kernel, Index rows, Index columns,
                StopRequest stop = {});

  /// The right inputs of the rows to come.
  void begin_tile(const std::vector<const InputState<Scalar>*>& right);
  /// Numbers from a row to the next.
  [[nodiscard]] Index row_step() const { return padded(static_cast<Index>(right_->size())); }
  /// Rows that run() takes.
  [[nodiscard]] Index rows_at_once() const { return rows_at_once_; }

  /// The readouts and inputs whose values source() wants before every run().
  [[nodiscard]] const std::vector<NodeId>& source_nodes() const { return source_nodes_; }
  [[nodiscard]] Plane<Scalar> source(std::size_t number) { return plane(sources_, number); }

  /// The output for some rows. Valid until the next call.
  Plane<Scalar> run(std::span<const PointRow<Scalar>> rows);

  /// Runs on an input with itself, the sources being its own, and records in `state` what pairs need.
  void record_state(InputState<Scalar>& state);

  [[nodiscard]] StepTimer& timer() { return timer_; }

 private:
  /// Auxiliary arrays of a row stage: [k] rows of both sides.
  struct Arrays {
    std::vector<Scalar*> left;
    std::vector<Scalar*> right;
  };

  /// Entries of multiples, taken out of the rows.
  struct Gathered {
    std::vector<Index> places;
    std::vector<Scalar> nngp, ntk;
    std::vector<std::vector<Scalar>> left, right;  ///< [k]
  };

  void gather_right(std::size_t number);
  void evaluate(std::size_t number);
  void apply_row(std::size_t number, const RowStage& stage, const Plane<Scalar>& target);
  void gather_multiples(std::size_t number, const Plane<Scalar>& target);
  void apply_to_multiples(const RowStage& stage, const Plane<Scalar>& target);
  void apply_to_itself(std::size_t number, const RowStage& stage, Index place, const Plane<Scalar>& target);
  void apply_stage(std::size_t number, const PairStage& stage, const Plane<Scalar>& source,
                   const Plane<Scalar>& target);
  void add_planes(const SumNode& node, const Instruction& instruction, const Plane<Scalar>& target);
  void multiply_planes(const ProductNode& node, const Instruction& instruction, const Plane<Scalar>& target);
  void record(std::size_t number, const Plane<Scalar>& source);
  [[nodiscard]] Plane<Scalar> plane(AlignedBuffer<Scalar>& buffer, std::size_t number);
  [[nodiscard]] Plane<Scalar> result_of(std::size_t number) {
    return plane(slots_, program_.points.instructions[number].slot);
  }
  [[nodiscard]] const Node& node_of(std::size_t number) const {
    return program_.graph.nodes[program_.points.instructions[number].node];
  }
  [[nodiscard]] std::size_t size() const;

  const Program& program_;
  bool with_ntk_;
  StopRequest stop_;
  Index rows_at_once_;
  Index capacity_;
  std::vector<NodeId> source_nodes_;
  std::vector<Arrays> arrays_;  ///< [instruction]
  AlignedBuffer<Scalar> slots_;
  AlignedBuffer<Scalar> sources_;
  AlignedBuffer<Scalar> auxiliary_;
  AlignedBuffer<Scalar> scratch_;
  const std::vector<const InputState<Scalar>*>* right_ = nullptr;
  std::span<const PointRow<Scalar>> rows_;
  std::vector<bool> keeps_multiples_;  ///< [node]
  Gathered multiples_;
  std::vector<Scalar> itself_;  ///< [row][nngp, ntk]: of the inputs of the rows with themselves.
  InputState<Scalar>* recorded_ = nullptr;
  StepTimer timer_;
};

}  // namespace widelimit
