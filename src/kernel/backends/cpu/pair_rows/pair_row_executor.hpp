#pragma once

#include <span>
#include <vector>

#include "kernel/backends/cpu/pair_rows/pair_row_memory.hpp"
#include "kernel/backends/cpu/pair_rows/pair_rows.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/step_timer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Executes what comes after the positions, or a network that never had any: one number for each pair. Some rows of a
/// tile are computed together as one vector; a row is a left input with all right inputs.
template <typename Scalar>
class PairRowExecutor {
 public:
  /// The program must outlive the executor. Tiles have at most `rows` left and `columns` right inputs. `state` is the
  /// layout of any input, because after the positions all are alike.
  PairRowExecutor(const Program& program, const StateLayout& state, Kernel kernel, Index rows, Index columns,
                  StopRequest stop = {});

  /// Sets the right inputs of the rows to come, and packs their arrays.
  void begin_tile(const std::vector<const InputState<Scalar>*>& right);
  /// The distance from one row to the next.
  [[nodiscard]] Index row_step() const { return padded(static_cast<Index>(right_.size())); }
  /// The most rows that run() takes.
  [[nodiscard]] Index rows_at_once() const { return rows_at_once_; }

  /// The readouts and inputs whose values the caller writes to source() before every run().
  [[nodiscard]] const std::vector<NodeId>& source_nodes() const { return source_nodes_; }
  [[nodiscard]] Plane<Scalar> source(std::size_t number) { return memory_.source(number); }

  /// Computes the output for some rows. It is valid until the next call.
  Plane<Scalar> run(std::span<const PairRow<Scalar>> rows) { return interpret_rows({rows, right_}, nullptr); }

  /// Runs on an input with itself, whose values must be in source(), and records in `state` what pairs need.
  void record_state(InputState<Scalar>& state);

  [[nodiscard]] StepTimer& timer() { return timer_; }

 private:
  Plane<Scalar> interpret_rows(const PairRows<Scalar>& rows, InputState<Scalar>* recorded);

  const Program& program_;
  StopRequest stop_;
  Index rows_at_once_;
  std::vector<NodeId> source_nodes_;
  std::vector<bool> keeps_multiples_;  ///< [node]
  PairRowMemory<Scalar> memory_;
  std::span<const InputState<Scalar>* const> right_;
  StepTimer timer_;
};

}  // namespace widelimit
