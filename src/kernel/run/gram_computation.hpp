#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernel/backends/gram_plan.hpp"
#include "kernel/run/ordered_inputs.hpp"
#include "kernel/run/pair_worker.hpp"
#include "kernel/run/progress_counter.hpp"
#include "kernel/run/state_worker.hpp"
#include "numerics/thread_arena.hpp"

namespace widelimit {

/// States of part of a batch, and the batch.
template <typename Scalar, typename Result>
struct Block {
  const OrderedInputs<Result>* inputs;
  StateBlock<Scalar> states;

  [[nodiscard]] Index begin() const { return states.begin(); }
  [[nodiscard]] Index end() const { return states.end(); }
};

/// States of a batch that outlive one Gram matrix, with what they refer to.
template <typename Scalar, typename Result>
struct KeptStates {
  std::shared_ptr<const GramPlan> plan;
  OrderedInputs<Result> inputs;
  std::optional<Block<Scalar, Result>> block;  ///< The first inputs, as many as the memory allows.

  [[nodiscard]] const Block<Scalar, Result>* first_block() const { return block ? &*block : nullptr; }

  KeptStates(std::shared_ptr<const GramPlan> states_plan, const Inputs<Result>& x, const char* name)
      : plan{std::move(states_plan)}, inputs(x, *plan, name) {}
  KeptStates(const KeptStates&) = delete;
  KeptStates& operator=(const KeptStates&) = delete;
};

/// A batch, and its first block if that is kept.
template <typename Scalar, typename Result>
struct BatchStates {
  const OrderedInputs<Result>& inputs;
  const Block<Scalar, Result>* kept = nullptr;
};

/// One side of a tile: inputs of a block, [begin, end).
struct TileSide {
  Index begin;
  Index end;

  [[nodiscard]] Index size() const { return end - begin; }
};

/// Which input of a pair is the left one: that of the rows, or, between parts of one batch, that which comes first in
/// the order of shapes, as in the whole of it.
enum class LeftInput { of_row, of_first_shape };

/// Distributes the tiles of a Gram matrix over threads. Takes inputs and writes kernels in the type Result, and
/// computes in Scalar.
template <typename Scalar, typename Result>
class GramComputation {
 public:
  /// All must outlive the computation.
  GramComputation(const GramPlan& plan, const GramOptions& options, ProgressCounter& progress);

  using Batch = BatchStates<Scalar, Result>;
  using Kept = KeptStates<Scalar, Result>;

  /// The pairs of one batch, mirrored ones computed once.
  void symmetric(const Inputs<Result>& inputs, const GramTarget<Result>& target);
  void symmetric(const Kept& states, const GramTarget<Result>& target);
  void rectangular(const Inputs<Result>& inputs1, const Inputs<Result>& inputs2,
                   const GramTarget<Result>& target);
  void rectangular(const Inputs<Result>& inputs1, const Kept& states2, const GramTarget<Result>& target);
  /// Inputs with themselves: a single column.
  void diagonal(const Inputs<Result>& inputs, const GramTarget<Result>& target);

  /// Makes states to be kept: as many as fit into half of the memory allowed, divided by the number of sharers.
  /// Replicates of a sampled network share it, because each keeps its own.
  void fill(Kept& states, std::int64_t sharers);

  /// The states of inputs [begin, end), all in memory.
  [[nodiscard]] Block<Scalar, Result> make_states(const OrderedInputs<Result>& x, Index begin, Index end);
  /// Computes all pairs of two blocks. With Batches::one both are parts of one batch, and pairs below the diagonal
  /// are mirrored.
  void compute(const Block<Scalar, Result>& left, const Block<Scalar, Result>& right, Batches batches,
               const GramTarget<Result>& target, LeftInput order = LeftInput::of_row);
  /// Throws NumericalError for the first input whose own NTK leaves the range, naming the layer.
  void find_out_of_range(const OrderedInputs<Result>& x);

  /// False if an entry was computed that is not finite.
  [[nodiscard]] bool is_finite() const { return is_finite_; }
  /// What leading outputs left out of the inputs whose states were made.
  [[nodiscard]] const ShortenedAttention& shortened_attention() const { return shortened_; }

 private:
  using Workers = tbb::enumerable_thread_specific<PairWorker<Scalar>>;

  void compute_symmetric(const Batch& x, const GramTarget<Result>& target);
  void compute_rectangular(const Batch& x1, const Batch& x2, const GramTarget<Result>& target);
  /// use(block) for the blocks from input `begin` on: kept ones, then others that are made for it.
  template <typename Use>
  void for_each_block(const Batch& x, Index begin, const Use& use);
  [[nodiscard]] Index block_end(const OrderedInputs<Result>& x, Index begin, std::size_t bytes) const;
  template <typename Body>
  void parallel(Index count, const Body& body);
  /// Copies states to the plan's device and records them there, with what follows from readouts computed there.
  void make_states_on_device(const OrderedInputs<Result>& x, StateBlock<Scalar>& states);
  /// States may be made again for every block of the other side, so that inputs are counted by their place.
  void count_shortened(const OrderedInputs<Result>& x, Index i, const Shortening& shortening);
  [[nodiscard]] std::vector<TileSide> sides(const Block<Scalar, Result>& block) const;
  [[nodiscard]] static std::vector<TileSide> single_inputs(const Block<Scalar, Result>& block);
  [[nodiscard]] PairWorker<Scalar> make_worker(const TileSize& most) const;
  void collect_seconds(Workers& workers) const;

  const GramPlan& plan_;
  const GramOptions& options_;
  numerics::ThreadArena arena_;
  ProgressCounter& progress_;
  std::atomic<bool> is_finite_ = true;
  std::mutex shortened_mutex_;
  std::set<std::pair<const OrderedInputs<Result>*, Index>> shortened_inputs_;
  ShortenedAttention shortened_;
  tbb::enumerable_thread_specific<StateWorker<Scalar>> state_workers_;
};

}  // namespace widelimit
