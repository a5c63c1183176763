#include "kernel/run/gram_computation.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>

#include "kernel/backends/device/device_plan.hpp"
#include "kernel/backends/device/device_readouts.hpp"
#include "kernel/run/first_error.hpp"
#include "kernel/run/input_recording.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// One at least for each of several devices, which wait for theirs.
int thread_count(const GramPlan& plan, const GramOptions& options) {
  const int threads = numerics::resolve_threads(options.threads, "gram");
  return plan.device == nullptr ? threads : std::max(threads, static_cast<int>(plan.device->devices()));
}

/// Runs a tile of two batches with its sides exchanged, and writes the transpose of the result. Which input of a pair
/// is the left one decides the order of sums, so exchanging the sides gives the bits of a Gram matrix of the whole
/// batch, in which the input that comes first in the order of shapes is always the left one.
template <typename Scalar, typename Result>
bool run_exchanged(PairWorker<Scalar>& worker, const StateRange<Scalar>& rows,
                   const StateRange<Scalar>& columns, const TilePlace& place,
                   const GramTarget<Result>& target) {
  const std::size_t row_count = place.rows.size(), column_count = place.columns.size();
  // The worker writes to a matrix of the tile's own, so its rows and columns are counted from 0.
  std::vector<Index> numbers(std::max(row_count, column_count));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  const std::span<const Index> from_zero = numbers;
  Matrix<Result> nngp, ntk;
  const auto sized = [&](const Result* wanted, Matrix<Result>& matrix) -> Result* {
    if (wanted == nullptr) return nullptr;
    matrix.resize(static_cast<Index>(column_count), static_cast<Index>(row_count));
    return matrix.data();
  };
  const GramTarget<Result> exchanged{sized(target.nngp, nngp), sized(target.ntk, ntk),
                                     static_cast<Index>(row_count)};
  const bool finite = worker.run(columns, rows, Batches::two,
                                 {from_zero.first(column_count), from_zero.first(row_count)}, exchanged);
  const auto write_back = [&](const Matrix<Result>& matrix, Result* entries) {
    for (Index j = 0; j < matrix.rows(); ++j)
      for (Index i = 0; i < matrix.cols(); ++i)
        entries[place.rows[static_cast<std::size_t>(i)] * target.columns +
                place.columns[static_cast<std::size_t>(j)]] = matrix(j, i);
  };
  write_back(nngp, target.nngp);
  write_back(ntk, target.ntk);
  return finite;
}

}  // namespace

template <typename Scalar, typename Result>
GramComputation<Scalar, Result>::GramComputation(const GramPlan& plan, const GramOptions& options,
                                                 ProgressCounter& progress)
    : plan_{plan},
      options_{options},
      arena_(thread_count(plan, options)),
      progress_{progress},
      state_workers_([&plan, &options] { return StateWorker<Scalar>(plan, StopRequest(options.stop)); }) {}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::symmetric(const Inputs<Result>& inputs,
                                                const GramTarget<Result>& target) {
  const OrderedInputs<Result> x(inputs, plan_, "x");
  compute_symmetric({x}, target);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::symmetric(const Kept& states, const GramTarget<Result>& target) {
  compute_symmetric({states.inputs, states.first_block()}, target);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::rectangular(const Inputs<Result>& inputs1,
                                                  const Inputs<Result>& inputs2,
                                                  const GramTarget<Result>& target) {
  const OrderedInputs<Result> x1(inputs1, plan_, "x1"), x2(inputs2, plan_, "x2");
  compute_rectangular({x1}, {x2}, target);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::rectangular(const Inputs<Result>& inputs1, const Kept& states2,
                                                  const GramTarget<Result>& target) {
  const OrderedInputs<Result> x1(inputs1, plan_, "x1");
  compute_rectangular({x1}, {states2.inputs, states2.first_block()}, target);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::compute_symmetric(const Batch& x, const GramTarget<Result>& target) {
  for_each_block(x, 0, [&](const auto& left) {
    // Only blocks to the right of the diagonal are computed; the worker mirrors their entries.
    compute(left, left, Batches::one, target);
    for_each_block(x, left.end(), [&](const auto& right) { compute(left, right, Batches::one, target); });
  });
  // This throws if the NTK of an input with itself overflows. Otherwise run_gram() names the pair and searches for
  // its layer.
  if (!is_finite_) find_out_of_range(x.inputs);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::compute_rectangular(const Batch& x1, const Batch& x2,
                                                          const GramTarget<Result>& target) {
  for_each_block(x1, 0, [&](const auto& left) {
    for_each_block(x2, 0, [&](const auto& right) { compute(left, right, Batches::two, target); });
  });
  if (is_finite_) return;
  find_out_of_range(x1.inputs);
  find_out_of_range(x2.inputs);
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::fill(Kept& states, std::int64_t sharers) {
  const OrderedInputs<Result>& x = states.inputs;
  // The other half is for the blocks that are computed beside the kept states.
  Index end = block_end(
      x, 0, state_memory(plan_, options_.state_memory_bytes) / 2 / static_cast<std::size_t>(sharers));
  // Kept states serve plans whose tiles have different sides, all of which divide the largest one. The block after
  // the kept ones has to begin on the grid of each plan, or entries would have other bits.
  if (plan_.vectors_only && end < x.size()) end -= end % largest_vector_tile_side;
  if (end > 0) states.block.emplace(make_states(x, 0, end));
}

template <typename Scalar, typename Result>
template <typename Use>
void GramComputation<Scalar, Result>::for_each_block(const Batch& x, Index begin, const Use& use) {
  if (x.kept != nullptr && begin == 0) {
    use(*x.kept);
    begin = x.kept->end();
  }
  // Two blocks are in memory at a time, one of each side, so each takes half of what there is. Kept states may
  // already take half of it.
  const std::size_t bytes = state_memory(plan_, options_.state_memory_bytes) / (x.kept == nullptr ? 2 : 4);
  while (begin < x.inputs.size()) {
    const auto block = make_states(x.inputs, begin, block_end(x.inputs, begin, bytes));
    use(block);
    begin = block.end();
  }
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::diagonal(const Inputs<Result>& inputs,
                                               const GramTarget<Result>& target) {
  const OrderedInputs<Result> x(inputs, plan_, "x");
  const GramTarget<Result> column{target.nngp, target.ntk, 1};
  for (Index first = 0; first < x.size();) {
    const auto block =
        make_states(x, first, block_end(x, first, state_memory(plan_, options_.state_memory_bytes) / 2));
    Workers workers([this] { return make_worker({1, 1}); });
    const std::vector<TileSide> parts = plan_.device != nullptr ? sides(block) : single_inputs(block);
    parallel(static_cast<Index>(parts.size()), [&](Index part) {
      const auto& [begin, end] = parts[static_cast<std::size_t>(part)];
      if (!workers.local().run_diagonal({&block.states, begin, end}, x.originals(begin, end), column))
        is_finite_ = false;
      progress_.add(end - begin);
    });
    collect_seconds(workers);
    first = block.end();
  }
  if (!is_finite_) find_out_of_range(x);
}

/// The end of the block that begins at `begin`: inputs whose states fit into the memory, one at least, and a
/// multiple of the tile's side.
template <typename Scalar, typename Result>
Index GramComputation<Scalar, Result>::block_end(const OrderedInputs<Result>& x, Index begin,
                                                 std::size_t bytes_allowed) const {
  std::size_t left = bytes_allowed;
  Index end = begin;
  for (; end < x.size(); ++end) {
    const auto bytes = static_cast<std::size_t>(x.layout(end).size) * sizeof(Scalar);
    if (bytes > left) break;
    left -= bytes;
  }
  // Blocks end at multiples of the largest side, so that tiles are not cut at the ends of blocks and entries do not
  // depend on the memory. At least one tile's side is taken even if it exceeds the memory.
  if (end == x.size()) return end;
  return std::min(x.size(), begin + std::max((end - begin) / plan_.largest_tile_side, Index{1}) *
                                        plan_.largest_tile_side);
}

template <typename Scalar, typename Result>
template <typename Body>
void GramComputation<Scalar, Result>::parallel(Index count, const Body& body) {
  // Tasks already occupy all threads. BLAS must not start others within each of them.
  const numerics::BlasThreads one_thread_a_task(1, numerics::threads_at_once(arena_.threads()));
  // Each thread takes the next task as soon as it is free. The largest tasks come first, so that threads finish at
  // about the same time. The order in which tasks begin is also what FirstError relies on.
  std::atomic<Index> next = 0;
  try {
    const auto work = [&](int) {
      while (!options_.stop.stop_requested()) {
        const Index i = next++;
        if (i >= count) return;
        body(i);
      }
    };
    if (numerics::has_threads())
      arena_.execute([&] { tbb::parallel_for(0, arena_.threads(), work); });
    else
      work(0);
  } catch (const Cancelled&) {
    // A tile that was stopped throws from within. The error below replaces it, because the number of pairs that were
    // computed is known here.
    if (!options_.stop.stop_requested()) throw;
  }
  if (options_.stop.stop_requested())
    throw Cancelled(
        fmt::format("gram: stopped on request after {} of {} pairs", progress_.done(), progress_.total()));
}

template <typename Scalar, typename Result>
Block<Scalar, Result> GramComputation<Scalar, Result>::make_states(const OrderedInputs<Result>& x,
                                                                   Index begin, Index end) {
  // One block of memory holds all states, one after the other. For vectors these are the rows of a matrix.
  std::vector<const StateLayout*> layouts;
  for (Index i = begin; i < end; ++i) layouts.push_back(&x.layout(i));
  Block<Scalar, Result> block{&x, StateBlock<Scalar>(layouts, begin)};
  FirstError errors;
  parallel(block.end() - begin, [&](Index i) {
    errors.run(i, [&] {
      InputState<Scalar>& state = block.states[begin + i];
      record_input(state_workers_.local(), plan_, x, begin + i, state);
      if (state.shortening().rank > 0) count_shortened(x, begin + i, state.shortening());
    });
  });
  errors.rethrow();
  if (plan_.device != nullptr) make_states_on_device(x, block.states);
  state_workers_.clear();  // their memory, before that of the pairs is taken
  return block;
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::make_states_on_device(const OrderedInputs<Result>& x,
                                                            StateBlock<Scalar>& states) {
  const auto on_device =
      std::make_shared<const DeviceStates<Scalar>>(plan_, states, StopRequest(options_.stop));
  states.set_on_device(on_device);
  // Vectors have no readouts: what they have recorded on the CPU, its checks have seen.
  if (plan_.vectors_only) return;
  const auto& instructions = plan_.program.pair_rows.instructions;
  const bool reads_variances =
      std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
        return needs_variances(plan_.program.graph.nodes[instruction.node].operation);
      });
  if (!reads_variances) return;
  DeviceReadouts<Scalar> readouts(plan_, StopRequest(options_.stop));
  FirstError errors;
  for (Index begin = states.begin(), end = begin; begin < states.end(); begin = end) {
    Tile<Scalar> tile;
    for (; end < states.end() && &states[end].layout() == &states[begin].layout(); ++end) {
      const InputState<Scalar>& state = states[end];
      tile.pairs.push_back({end - begin, end - begin, true});
      tile.left.push_back(&state);
      tile.right.push_back(&state);
    }
    readouts.run(tile, *on_device, *on_device);
    parallel(end - begin, [&](Index i) {
      const auto read = [&](NodeId node) {
        const auto& [nngp, ntk] = readouts.readout(node, i);
        return FeatureStage::Values{nngp, ntk};
      };
      errors.run(begin + i, [&] {
        naming_input(x, begin + i, [&] { state_workers_.local().record_pair_rows(states[begin + i], read); });
      });
    });
    errors.rethrow();
  }
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::count_shortened(const OrderedInputs<Result>& x, Index i,
                                                      const Shortening& shortening) {
  const std::scoped_lock lock(shortened_mutex_);
  shortened_inputs_.emplace(&x, i);
  shortened_ = {static_cast<Index>(shortened_inputs_.size()),
                std::max(shortened_.largest_rank, shortening.rank),
                std::max(shortened_.largest_tail, shortening.tail)};
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::find_out_of_range(const OrderedInputs<Result>& x) {
  if (plan_.kernel != Kernel::with_ntk) return;
  // States are made without the NTK, unless a stage reads it, and only their variances are checked. This runs every
  // input with itself once more with its NTK, whose checks name the layer.
  StateWorker<Scalar> worker(plan_, StopRequest(options_.stop), Kernel::with_ntk);
  for (Index i = 0; i < x.size(); ++i) {
    StateBlock<Scalar> state({&x.layout(i)}, i);
    record_input(worker, plan_, x, i, state[i]);
  }
}

/// Cuts a block into sides of tiles. Inputs of one shape are cut into sides of nearly equal size, because no entry
/// depends on where they are cut. Vectors are cut on a fixed grid: a matrix product may add up in another order if
/// its size changes.
template <typename Scalar, typename Result>
std::vector<TileSide> GramComputation<Scalar, Result>::sides(const Block<Scalar, Result>& block) const {
  std::vector<TileSide> sides;
  for (Index begin = block.begin(); begin < block.end();) {
    const Shape& shape = block.inputs->shape(begin);
    const Index most = plan_.tile_sides.at(shape);
    Index end = begin + 1;
    while (end < block.end() && (plan_.vectors_only || block.inputs->shape(end) == shape)) ++end;
    const Index inputs = end - begin, count = (inputs + most - 1) / most;
    for (Index i = 0; i < count; ++i)
      sides.push_back(plan_.vectors_only
                          ? TileSide{begin + i * most, std::min(begin + (i + 1) * most, end)}
                          : TileSide{begin + inputs * i / count, begin + inputs * (i + 1) / count});
    begin = end;
  }
  return sides;
}

/// Inputs one by one, where they share nothing: launches of a device are for many.
template <typename Scalar, typename Result>
std::vector<TileSide> GramComputation<Scalar, Result>::single_inputs(const Block<Scalar, Result>& block) {
  std::vector<TileSide> sides;
  for (Index i = block.begin(); i < block.end(); ++i) sides.push_back({i, i + 1});
  return sides;
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::compute(const Block<Scalar, Result>& left,
                                              const Block<Scalar, Result>& right, Batches batches,
                                              const GramTarget<Result>& target, LeftInput order) {
  struct TileSides {
    TileSide left;
    TileSide right;
  };
  std::vector<TileSides> tiles;
  TileSize most{1, 1};
  for (const TileSide& i : sides(left))
    for (const TileSide& j : sides(right)) {
      // Tiles below the diagonal are the mirror images of others.
      if (batches == Batches::one && i.begin > j.begin) continue;
      tiles.push_back({i, j});
      most = most.joined({i.size(), j.size()});
    }
  const auto size = [](const TileSides& tile) { return tile.left.size() * tile.right.size(); };
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](const TileSides& a, const TileSides& b) { return size(a) > size(b); });
  Workers workers([this, most] { return make_worker(most); });
  parallel(static_cast<Index>(tiles.size()), [&](Index t) {
    const auto& [i, j] = tiles[static_cast<std::size_t>(t)];
    const StateRange<Scalar> rows{&left.states, i.begin, i.end}, columns{&right.states, j.begin, j.end};
    const TilePlace place{left.inputs->originals(i.begin, i.end), right.inputs->originals(j.begin, j.end)};
    // Networks of vectors keep the order of the batch (OrderedInputs), so their left input is the one of the row.
    const bool exchange = order == LeftInput::of_first_shape && !plan_.vectors_only &&
                          right.inputs->shape(j.begin) < left.inputs->shape(i.begin);
    const bool finite = exchange ? run_exchanged(workers.local(), rows, columns, place, target)
                                 : workers.local().run(rows, columns, batches, place, target);
    if (!finite) is_finite_ = false;
    const bool same = batches == Batches::one && i.begin == j.begin;
    progress_.add(same ? i.size() * (i.size() + 1) / 2 : i.size() * j.size());
  });
  collect_seconds(workers);
}

template <typename Scalar, typename Result>
PairWorker<Scalar> GramComputation<Scalar, Result>::make_worker(const TileSize& most) const {
  PairWorker<Scalar> worker(plan_, most, StopRequest(options_.stop));
  if (options_.seconds_per_line != nullptr) worker.start_timer();
  return worker;
}

template <typename Scalar, typename Result>
void GramComputation<Scalar, Result>::collect_seconds(Workers& workers) const {
  if (options_.seconds_per_line == nullptr) return;
  options_.seconds_per_line->resize(plan_.program.graph.nodes.size());
  for (PairWorker<Scalar>& worker : workers) worker.add_seconds(*options_.seconds_per_line);
}

template class GramComputation<float, float>;
template class GramComputation<double, double>;
template class GramComputation<double, float>;

}  // namespace widelimit
