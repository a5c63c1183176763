#pragma once

#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <vector>

#include "kernel/run/gram_plan.hpp"
#include "kernel/run/ordered_inputs.hpp"
#include "kernel/run/pair_worker.hpp"
#include "kernel/run/progress_counter.hpp"
#include "kernel/run/state_worker.hpp"

namespace widelimit {

/// States of part of a batch, and the batch.
template <typename Scalar, typename Result>
struct Block {
  const OrderedInputs<Result>* inputs;
  StateBlock<Scalar> states;

  [[nodiscard]] Index begin() const { return states.begin(); }
  [[nodiscard]] Index end() const { return states.end(); }
};

/// One side of a tile: inputs of a block, [begin, end).
struct TileSide {
  Index begin;
  Index end;

  [[nodiscard]] Index size() const { return end - begin; }
};

/// Distributes the tiles of a Gram matrix over threads. Takes inputs and writes kernels in the type Result, and
/// computes in Scalar.
template <typename Scalar, typename Result>
class GramComputation {
 public:
  /// All must outlive the computation.
  GramComputation(const GramPlan& plan, const GramOptions& options, ProgressCounter& progress);

  /// The pairs of one batch, mirrored ones computed once.
  void symmetric(const Inputs<Result>& inputs, const GramTarget<Result>& target);
  void rectangular(const Inputs<Result>& inputs1, const Inputs<Result>& inputs2,
                   const GramTarget<Result>& target);
  /// Inputs with themselves: a single column.
  void diagonal(const Inputs<Result>& inputs, const GramTarget<Result>& target);

  /// False if some entry that was computed is not.
  [[nodiscard]] bool is_finite() const { return is_finite_; }

 private:
  using Workers = tbb::enumerable_thread_specific<PairWorker<Scalar>>;

  [[nodiscard]] Index block_end(const OrderedInputs<Result>& x, Index begin) const;
  template <typename Body>
  void parallel(Index count, const Body& body);
  /// Throws NumericalError for the first input whose own NTK leaves the range, naming the layer.
  void find_out_of_range(const OrderedInputs<Result>& x);
  [[nodiscard]] Block<Scalar, Result> make_states(const OrderedInputs<Result>& x, Index begin);
  /// Makes the state of input i. Errors of numbers name the input.
  void run_state(StateWorker<Scalar>& worker, const OrderedInputs<Result>& x, Index i,
                 InputState<Scalar>& state) const;
  [[nodiscard]] std::vector<TileSide> sides(const Block<Scalar, Result>& block) const;
  void compute(const Block<Scalar, Result>& left, const Block<Scalar, Result>& right, Batches batches,
               const GramTarget<Result>& target);
  [[nodiscard]] PairWorker<Scalar> make_worker(Index side) const;
  void collect_seconds(Workers& workers) const;

  const GramPlan& plan_;
  const GramOptions& options_;
  tbb::task_arena arena_;
  ProgressCounter& progress_;
  std::atomic<bool> is_finite_ = true;
  tbb::enumerable_thread_specific<StateWorker<Scalar>> state_workers_;
};

}  // namespace widelimit
