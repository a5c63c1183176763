#include "widelimit/kernel/gram.hpp"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "kernel/run/gram_plan.hpp"
#include "kernel/run/pair_worker.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/memory.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
void check_finite(const Inputs<Scalar>& inputs, const char* name, int threads) {
  const auto is_finite = [&](Index i) {
    return numerics::linear_rows<Scalar>().all_finite(inputs[i].data(), inputs[i].size());
  };
  std::atomic<bool> all_finite = true;
  tbb::task_arena(numerics::resolve_threads(threads, "gram")).execute([&] {
    tbb::parallel_for(Index{0}, inputs.size(), [&](Index i) {
      if (!is_finite(i)) all_finite = false;
    });
  });
  for (Index i = 0; !all_finite && i < inputs.size(); ++i) {
    if (is_finite(i)) continue;
    const auto input = inputs[i];
    const auto bad =
        std::find_if_not(input.begin(), input.end(), [](Scalar value) { return std::isfinite(value); });
    throw ArgumentError(fmt::format("gram: {} must be finite, got {} at entry {} of input {}", name, *bad,
                                    bad - input.begin(), i));
  }
}

/// Counts pairs and tells the caller, one thread at a time.
class ProgressCounter {
 public:
  ProgressCounter(const GramOptions& options, Index total) : options_{options}, total_{total} {}

  void add(Index pairs) {
    const Index done = done_ += pairs;
    if (!options_.progress) return;
    const std::scoped_lock lock(mutex_);
    // A thread that was overtaken on its way here must not count backwards.
    if (done <= reported_) return;
    reported_ = done;
    options_.progress({done, total_});
  }

  [[nodiscard]] Index done() const { return done_; }
  [[nodiscard]] Index total() const { return total_; }

 private:
  const GramOptions& options_;
  Index total_;
  std::atomic<Index> done_ = 0;
  std::mutex mutex_;
  Index reported_ = 0;
};

/// A batch in the order in which it is computed: by shape, so that each side of a tile has one.
template <typename Scalar>
class OrderedInputs {
 public:
  /// `name`: of the batch, for errors.
  OrderedInputs(const Inputs<Scalar>& inputs, const GramPlan& plan, const char* name)
      : inputs_{inputs}, plan_{plan}, name_{name}, order_(static_cast<std::size_t>(inputs.size())) {
    std::iota(order_.begin(), order_.end(), Index{0});
    if (inputs.is_ragged() && !plan.vectors_only)
      std::stable_sort(order_.begin(), order_.end(),
                       [&](Index i, Index j) { return inputs.shape(i) < inputs.shape(j); });
  }

  [[nodiscard]] Index size() const { return inputs_.size(); }
  [[nodiscard]] std::span<const Scalar> input(Index i) const { return inputs_[original(i)]; }
  [[nodiscard]] std::string name(Index i) const { return fmt::format("input {} of {}", original(i), name_); }
  [[nodiscard]] const Shape& shape(Index i) const { return inputs_.shape(original(i)); }
  [[nodiscard]] const StateLayout& layout(Index i) const { return plan_.state_layouts.at(shape(i)); }
  /// Where inputs [begin, end) stand in the batch.
  [[nodiscard]] std::span<const Index> originals(Index begin, Index end) const {
    return std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

 private:
  [[nodiscard]] Index original(Index i) const { return order_[static_cast<std::size_t>(i)]; }

  const Inputs<Scalar>& inputs_;
  const GramPlan& plan_;
  const char* name_;
  std::vector<Index> order_;
};

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

/// Takes inputs and writes kernels in the type Result, and computes in Scalar.
template <typename Scalar, typename Result>
class GramComputation {
 public:
  GramComputation(const GramPlan& plan, const GramOptions& options, ProgressCounter& progress)
      : plan_{plan},
        options_{options},
        arena_(numerics::resolve_threads(options.threads, "gram")),
        progress_{progress},
        state_workers_([&plan] { return StateWorker<Scalar>(plan); }) {}

  void symmetric(const Inputs<Result>& inputs, const GramTarget<Result>& target) {
    const OrderedInputs<Result> x(inputs, plan_, "x");
    for (Index first = 0; first < x.size();) {
      const auto left = make_states(x, first);
      compute(left, left, Batches::one, target);
      for (Index second = left.end(); second < x.size();) {
        const auto right = make_states(x, second);
        compute(left, right, Batches::one, target);
        second = right.end();
      }
      first = left.end();
    }
  }

  void rectangular(const Inputs<Result>& inputs1, const Inputs<Result>& inputs2,
                   const GramTarget<Result>& target) {
    const OrderedInputs<Result> x1(inputs1, plan_, "x1"), x2(inputs2, plan_, "x2");
    for (Index first = 0; first < x1.size();) {
      const auto left = make_states(x1, first);
      for (Index second = 0; second < x2.size();) {
        const auto right = make_states(x2, second);
        compute(left, right, Batches::two, target);
        second = right.end();
      }
      first = left.end();
    }
  }

  void diagonal(const Inputs<Result>& inputs, const GramTarget<Result>& target) {
    const OrderedInputs<Result> x(inputs, plan_, "x");
    constexpr Index first_column = 0;
    const GramTarget<Result> column{target.nngp, target.ntk, 1};
    for (Index first = 0; first < x.size();) {
      const auto block = make_states(x, first);
      Workers workers([this] { return make_worker(1); });
      parallel(block.end() - block.begin(), [&](Index offset) {
        const Index i = block.begin() + offset;
        const StateRange<Scalar> itself{&block.states, i, i + 1};
        const TilePlace place{x.originals(i, i + 1), {&first_column, 1}};
        if (!workers.local().run(itself, itself, Batches::one, place, column)) is_finite_ = false;
        progress_.add(1);
      });
      collect_seconds(workers);
      first = block.end();
    }
  }

  /// False if some entry that was computed is not.
  [[nodiscard]] bool is_finite() const { return is_finite_; }

 private:
  using Workers = tbb::enumerable_thread_specific<PairWorker<Scalar>>;

  /// The end of the block that begins at `begin`: inputs whose states fit into half of the memory allowed (a
  /// tile has two sides), a multiple of the tile's side.
  Index block_end(const OrderedInputs<Result>& x, Index begin) const {
    std::size_t left = options_.state_memory_bytes / 2;
    Index end = begin;
    for (; end < x.size(); ++end) {
      const auto bytes = static_cast<std::size_t>(x.layout(end).size) * sizeof(Scalar);
      if (bytes > left) break;
      left -= bytes;
    }
    if (end == x.size()) return end;
    return std::min(x.size(), begin + std::max((end - begin) / plan_.largest_tile_side, Index{1}) *
                                          plan_.largest_tile_side);
  }

  template <typename Body>
  void parallel(Index count, const Body& body) {
    const numerics::BlasThreads one_thread_a_task(1);
    // In order, whoever is free: with the largest tasks first, threads finish together.
    std::atomic<Index> next = 0;
    try {
      arena_.execute([&] {
        tbb::parallel_for(0, arena_.max_concurrency(), [&](int) {
          while (!options_.stop.stop_requested()) {
            const Index i = next++;
            if (i >= count) return;
            body(i);
          }
        });
      });
    } catch (const Cancelled&) {
      // From within a tile. How far the computation came is known here.
      if (!options_.stop.stop_requested()) throw;
    }
    if (options_.stop.stop_requested())
      throw Cancelled(
          fmt::format("gram: stopped on request after {} of {} pairs", progress_.done(), progress_.total()));
  }

  Block<Scalar, Result> make_states(const OrderedInputs<Result>& x, Index begin) {
    std::vector<const StateLayout*> layouts;
    for (Index i = begin; i < block_end(x, begin); ++i) layouts.push_back(&x.layout(i));
    Block<Scalar, Result> block{&x, StateBlock<Scalar>(layouts, begin)};
    parallel(block.end() - begin, [&](Index i) {
      try {
        run_state(x.input(begin + i), block.states[begin + i]);
      } catch (const NumericalError& error) {
        throw NumericalError(fmt::format("gram: {}: {}", x.name(begin + i), error.what()));
      }
    });
    state_workers_.clear();  // their memory, before that of the pairs is taken
    return block;
  }

  void run_state(std::span<const Result> input, InputState<Scalar>& state) {
    if constexpr (std::is_same_v<Scalar, Result>)
      state_workers_.local().run(input, state);
    else
      state_workers_.local().run(std::vector<Scalar>(input.begin(), input.end()), state);
  }

  /// Cuts a block into sides of tiles: inputs of one shape into sides of nearly equal size; vectors on a
  /// fixed grid.
  std::vector<TileSide> sides(const Block<Scalar, Result>& block) const {
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

  void compute(const Block<Scalar, Result>& left, const Block<Scalar, Result>& right, Batches batches,
               const GramTarget<Result>& target) {
    struct TileSides {
      TileSide left;
      TileSide right;
    };
    std::vector<TileSides> tiles;
    for (const TileSide& i : sides(left))
      for (const TileSide& j : sides(right))
        if (batches == Batches::two || i.begin <= j.begin) tiles.push_back({i, j});
    const auto size = [](const TileSides& tile) { return tile.left.size() * tile.right.size(); };
    std::stable_sort(tiles.begin(), tiles.end(),
                     [&](const TileSides& a, const TileSides& b) { return size(a) > size(b); });
    Workers workers([this] { return make_worker(plan_.largest_tile_side); });
    parallel(static_cast<Index>(tiles.size()), [&](Index t) {
      const auto& [i, j] = tiles[static_cast<std::size_t>(t)];
      const StateRange<Scalar> rows{&left.states, i.begin, i.end}, columns{&right.states, j.begin, j.end};
      const TilePlace place{left.inputs->originals(i.begin, i.end), right.inputs->originals(j.begin, j.end)};
      if (!workers.local().run(rows, columns, batches, place, target)) is_finite_ = false;
      const bool same = batches == Batches::one && i.begin == j.begin;
      progress_.add(same ? i.size() * (i.size() + 1) / 2 : i.size() * j.size());
    });
    collect_seconds(workers);
  }

  PairWorker<Scalar> make_worker(Index side) const {
    PairWorker<Scalar> worker(plan_, side);
    if (options_.seconds_per_line != nullptr) worker.start_timer();
    return worker;
  }

  void collect_seconds(Workers& workers) const {
    if (options_.seconds_per_line == nullptr) return;
    options_.seconds_per_line->resize(plan_.program.graph.nodes.size());
    for (PairWorker<Scalar>& worker : workers) worker.add_seconds(*options_.seconds_per_line);
  }

  const GramPlan& plan_;
  const GramOptions& options_;
  tbb::task_arena arena_;
  ProgressCounter& progress_;
  std::atomic<bool> is_finite_ = true;
  tbb::enumerable_thread_specific<StateWorker<Scalar>> state_workers_;
};

/// Its memory is not initialised.
template <typename Scalar>
GramResult<Scalar> empty_result(const GramOptions& options, Index rows, Index columns) {
  const double entries = static_cast<double>(rows) * static_cast<double>(columns);
  const double kernels = options.kernels == Kernels::both ? 2 : 1;
  constexpr bool single = std::is_same_v<Scalar, float>;
  numerics::require_memory(
      "gram", fmt::format("{} of {} x {} pairs", kernels == 2 ? "both kernels" : "the kernel", rows, columns),
      kernels * entries * sizeof(Scalar),
      fmt::format("take fewer inputs{}{}", kernels == 2 ? ", one kernel" : "", single ? "" : ", or float"));
  GramResult<Scalar> result;
  if (options.kernels != Kernels::ntk) result.nngp.resize(rows, columns);
  if (options.kernels != Kernels::nngp) result.ntk.resize(rows, columns);
  return result;
}

template <typename Scalar>
GramTarget<Scalar> target_of(GramResult<Scalar>& result) {
  return {result.nngp.size() > 0 ? result.nngp.data() : nullptr,
          result.ntk.size() > 0 ? result.ntk.data() : nullptr,
          std::max(result.nngp.cols(), result.ntk.cols())};
}

/// Names the first entry that is not finite, if there is one here.
template <typename Scalar>
void throw_not_finite(const Matrix<Scalar>& gram, const char* name) {
  for (Index i = 0; i < gram.rows(); ++i)
    for (Index j = 0; j < gram.cols(); ++j)
      if (!std::isfinite(gram(i, j)))
        throw NumericalError(fmt::format(
            "gram: the {} of pair ({}, {}) is {}; it leaves the range of {}, rescale the network's "
            "inputs or weights{}",
            name, i, j, gram(i, j), sizeof(Scalar) == 4 ? "float" : "double",
            sizeof(Scalar) == 4 ? ", or use double" : ""));
}

/// Adds up results of replicates of a sampled network: means, and standard errors from their scatter.
template <typename Scalar>
class ReplicateMean {
 public:
  void add(const Matrix<Scalar>& result) {
    const auto& value = result.template cast<double>();
    ++count_;
    if (count_ == 1) {
      mean_ = value;
      squares_ = Matrix<double>::Zero(value.rows(), value.cols());
      return;
    }
    const Matrix<double> difference = value - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference.cwiseProduct(value - mean_);
  }

  [[nodiscard]] Matrix<Scalar> mean() const { return mean_.template cast<Scalar>(); }
  [[nodiscard]] Matrix<Scalar> error() const {
    return (squares_ / (static_cast<double>(count_) * static_cast<double>(count_ - 1)))
        .cwiseSqrt()
        .template cast<Scalar>();
  }

 private:
  Index count_ = 0;
  Matrix<double> mean_;
  Matrix<double> squares_;
};

/// What is to be computed: the inputs' shapes and channels, the size of the result, and its pairs.
struct GramTask {
  NamedShapes shapes;
  Index channels;
  Index rows;
  Index columns;
  Index pairs;
};

/// Runs compute(computation, target) once, or for every replicate of a sampled network.
template <typename Scalar, typename Compute>
GramResult<Scalar> run(const Network& network, const GramTask& task, const GramOptions& options,
                       const Compute& compute) {
  const auto run_plan = [&](const GramPlan& plan, ProgressCounter& progress) {
    auto result = empty_result<Scalar>(options, task.rows, task.columns);
    const Index before = progress.done();
    const auto compute_in = [&](auto computation) {
      compute(computation, target_of(result));
      return computation.is_finite();
    };
    const bool finite = plan.in_double ? compute_in(GramComputation<double, Scalar>(plan, options, progress))
                                       : compute_in(GramComputation<Scalar, Scalar>(plan, options, progress));
    // A pair that was forgotten must not pass unnoticed.
    if (progress.done() - before != task.pairs)
      throw std::logic_error(
          fmt::format("gram: {} of {} pairs were computed", progress.done() - before, task.pairs));
    if (!finite) {
      throw_not_finite(result.nngp, "nngp");
      throw_not_finite(result.ntk, "ntk");
    }
    return result;
  };
  const GramSize size{task.channels, std::max(task.rows, task.columns), task.pairs};
  const GramPlan plan = make_plan(network, task.shapes, size, sizeof(Scalar), options);
  if (plan.program.graph.fewest_samples == 0) {
    ProgressCounter progress(options, task.pairs);
    return run_plan(plan, progress);
  }
  const std::int64_t count = sampled_replicates(plan.program.graph);
  ProgressCounter progress(options, task.pairs * count);
  ReplicateMean<Scalar> nngp, ntk;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto result =
        run_plan(make_plan(network, task.shapes, size, sizeof(Scalar), options, {r, count}), progress);
    nngp.add(result.nngp);
    ntk.add(result.ntk);
  }
  return {nngp.mean(), ntk.mean(), nngp.error(), ntk.error()};
}

template <typename Scalar>
NamedShapes shapes_of(const Inputs<Scalar>& x, const char* name) {
  NamedShapes shapes;
  for (Index i = 0; i < (x.is_ragged() ? x.size() : 1); ++i)
    if (!shapes.contains(x.shape(i))) shapes.emplace(x.shape(i), fmt::format("input {} of {}", i, name));
  return shapes;
}

}  // namespace

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task{shapes_of(x, "x"), x.channels(), x.size(), x.size(), x.size() * (x.size() + 1) / 2};
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.symmetric(x, target); });
}

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                        const GramOptions& options) {
  check_finite(x1, "x1", options.threads);
  check_finite(x2, "x2", options.threads);
  if (x1.axes() != x2.axes() || x1.channels() != x2.channels() ||
      (!x1.is_ragged() && !x2.is_ragged() && x1.shape(0) != x2.shape(0)))
    throw ArgumentError(
        fmt::format("gram: x1 and x2 must have equal shapes, got {} with {} channels and {} with {}",
                    to_string(x1.shape(0)), x1.channels(), to_string(x2.shape(0)), x2.channels()));
  GramTask task{shapes_of(x1, "x1"), x1.channels(), x1.size(), x2.size(), x1.size() * x2.size()};
  task.shapes.merge(shapes_of(x2, "x2"));
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.rectangular(x1, x2, target); });
}

template <typename Scalar>
GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                 const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task{shapes_of(x, "x"), x.channels(), x.size(), 1, x.size()};
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.diagonal(x, target); });
}

template GramResult<float> gram(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const GramOptions&);
template GramResult<float> gram(const Network&, const Inputs<float>&, const Inputs<float>&,
                                const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const Inputs<double>&,
                                 const GramOptions&);
template GramResult<float> gram_diagonal(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram_diagonal(const Network&, const Inputs<double>&, const GramOptions&);

}  // namespace widelimit
