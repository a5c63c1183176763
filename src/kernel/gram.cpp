#include "widelimit/kernel/gram.hpp"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "kernel/gram_plan.hpp"
#include "kernel/pair_worker.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
void check_finite(const Inputs<Scalar>& inputs, const char* name) {
  for (Index i = 0; i < inputs.size(); ++i) {
    const auto input = inputs[i];
    const auto bad =
        std::find_if_not(input.begin(), input.end(), [](Scalar value) { return std::isfinite(value); });
    if (bad != input.end())
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

/// A tile: the first input on both sides.
struct TileOrigin {
  Index left;
  Index right;
};

template <typename Scalar>
class GramComputation {
 public:
  GramComputation(const GramPlan& plan, const GramOptions& options, ProgressCounter& progress)
      : plan_{plan},
        options_{options},
        arena_(numerics::resolve_threads(options.threads, "gram")),
        progress_{progress},
        state_workers_([&plan] { return StateWorker<Scalar>(plan); }) {}

  void symmetric(const Inputs<Scalar>& x, const GramTarget<Scalar>& target) {
    for (Index first = 0; first < x.size(); first += block_size()) {
      const auto left = make_states(x, first);
      compute(left, left, Batches::one, target);
      for (Index second = first + block_size(); second < x.size(); second += block_size())
        compute(left, make_states(x, second), Batches::one, target);
    }
    mirror(target.nngp, x.size());
    mirror(target.ntk, x.size());
  }

  void rectangular(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2, const GramTarget<Scalar>& target) {
    for (Index first = 0; first < x1.size(); first += block_size()) {
      const auto left = make_states(x1, first);
      for (Index second = 0; second < x2.size(); second += block_size())
        compute(left, make_states(x2, second), Batches::two, target);
    }
  }

  void diagonal(const Inputs<Scalar>& x, const GramTarget<Scalar>& target) {
    for (Index first = 0; first < x.size(); first += block_size()) {
      const auto block = make_states(x, first);
      Workers workers([this] { return PairWorker<Scalar>(plan_, 1); });
      parallel(block.end() - block.begin(), [&](Index i) {
        const StateRange<Scalar> itself{&block, block.begin() + i, block.begin() + i + 1};
        workers.local().run(itself, itself, Batches::one, itself.begin, 0, target);
        progress_.add(1);
      });
    }
  }

 private:
  using Workers = tbb::enumerable_thread_specific<PairWorker<Scalar>>;

  /// Inputs whose states fit into half of the memory allowed (a tile has two sides), a multiple of the tile's
  /// side.
  Index block_size() const {
    const auto bytes = static_cast<std::size_t>(std::max<Index>(plan_.state_layout.size, 1)) * sizeof(Scalar);
    const auto fitting = static_cast<Index>(options_.state_memory_bytes / (2 * bytes));
    return std::max(fitting / plan_.tile_side, Index{1}) * plan_.tile_side;
  }

  template <typename Body>
  void parallel(Index count, const Body& body) {
    const numerics::BlasThreads one_thread_a_task(1);
    arena_.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<Index>(0, count, 1),
          [&](const tbb::blocked_range<Index>& range) {
            for (Index i = range.begin(); i < range.end(); ++i)
              if (!options_.stop.stop_requested()) body(i);
          },
          tbb::simple_partitioner());
    });
    if (options_.stop.stop_requested())
      throw Cancelled(
          fmt::format("gram: stopped on request after {} of {} pairs", progress_.done(), progress_.total()));
  }

  StateBlock<Scalar> make_states(const Inputs<Scalar>& x, Index begin) {
    StateBlock<Scalar> block(plan_.state_layout, begin, std::min(begin + block_size(), x.size()));
    parallel(block.end() - begin,
             [&](Index i) { state_workers_.local().run(x[begin + i], block[begin + i]); });
    return block;
  }

  void compute(const StateBlock<Scalar>& left, const StateBlock<Scalar>& right, Batches batches,
               const GramTarget<Scalar>& target) {
    const Index side = plan_.tile_side;
    std::vector<TileOrigin> tiles;
    for (Index i = left.begin(); i < left.end(); i += side)
      for (Index j = right.begin(); j < right.end(); j += side)
        if (batches == Batches::two || i <= j) tiles.push_back({i, j});
    Workers workers([this, side] { return PairWorker<Scalar>(plan_, side); });
    parallel(static_cast<Index>(tiles.size()), [&](Index t) {
      const auto [i, j] = tiles[static_cast<std::size_t>(t)];
      const StateRange<Scalar> rows{&left, i, std::min(i + side, left.end())};
      const StateRange<Scalar> columns{&right, j, std::min(j + side, right.end())};
      workers.local().run(rows, columns, batches, i, j, target);
      const Index height = rows.end - rows.begin, width = columns.end - columns.begin;
      progress_.add(batches == Batches::one && i == j ? height * (height + 1) / 2 : height * width);
    });
  }

  static void mirror(Scalar* matrix, Index size) {
    if (matrix == nullptr) return;
    Eigen::Map<Matrix<Scalar>> gram(matrix, size, size);
    gram.template triangularView<Eigen::StrictlyLower>() = gram.transpose();
  }

  const GramPlan& plan_;
  const GramOptions& options_;
  tbb::task_arena arena_;
  ProgressCounter& progress_;
  tbb::enumerable_thread_specific<StateWorker<Scalar>> state_workers_;
};

/// Results are NaN until computed, so that a forgotten entry cannot pass for one.
template <typename Scalar>
GramResult<Scalar> empty_result(const GramOptions& options, Index rows, Index columns) {
  GramResult<Scalar> result;
  const auto nan = std::numeric_limits<Scalar>::quiet_NaN();
  if (options.kernels != Kernels::ntk) result.nngp = Matrix<Scalar>::Constant(rows, columns, nan);
  if (options.kernels != Kernels::nngp) result.ntk = Matrix<Scalar>::Constant(rows, columns, nan);
  return result;
}

template <typename Scalar>
GramTarget<Scalar> target_of(GramResult<Scalar>& result) {
  return {result.nngp.size() > 0 ? result.nngp.data() : nullptr,
          result.ntk.size() > 0 ? result.ntk.data() : nullptr,
          std::max(result.nngp.cols(), result.ntk.cols())};
}

template <typename Scalar>
void check_result(const Matrix<Scalar>& gram, const char* name) {
  for (Index i = 0; i < gram.rows(); ++i)
    for (Index j = 0; j < gram.cols(); ++j)
      if (!std::isfinite(gram(i, j)))
        throw NumericalError(
            fmt::format("gram: the {} of pair ({}, {}) is {}; the network's variances leave the range of {}, "
                        "rescale its inputs or "
                        "weights{}",
                        name, i, j, gram(i, j), sizeof(Scalar) == 4 ? "float" : "double",
                        sizeof(Scalar) == 4 ? ", or use double" : ""));
}

/// Adds up results of replicates of a sampled network: means, and standard errors from their scatter.
template <typename Scalar>
class ReplicateMean {
 public:
  void add(const Matrix<Scalar>& result) {
    const Matrix<double> value = result.template cast<double>();
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

constexpr std::int64_t most_replicates = 16;

/// Runs compute(computation, target) once, or for every replicate of a sampled network.
template <typename Scalar, typename Compute>
GramResult<Scalar> run(const Network& network, const Inputs<Scalar>& x, Index rows, Index columns,
                       Index pairs, const GramOptions& options, const Compute& compute) {
  const auto run_plan = [&](const GramPlan& plan, ProgressCounter& progress) {
    auto result = empty_result<Scalar>(options, rows, columns);
    GramComputation<Scalar> computation(plan, options, progress);
    compute(computation, target_of(result));
    check_result(result.nngp, "nngp");
    check_result(result.ntk, "ntk");
    return result;
  };
  const GramPlan plan = make_plan(network, x.shape(), x.channels(), sizeof(Scalar), options);
  const std::int64_t samples = plan.program.graph.fewest_samples;
  if (samples == 0) {
    ProgressCounter progress(options, pairs);
    return run_plan(plan, progress);
  }
  const std::int64_t count = std::min(samples, most_replicates);
  ProgressCounter progress(options, pairs * count);
  ReplicateMean<Scalar> nngp, ntk;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto result =
        run_plan(make_plan(network, x.shape(), x.channels(), sizeof(Scalar), options, {r, count}), progress);
    nngp.add(result.nngp);
    ntk.add(result.ntk);
  }
  return {nngp.mean(), ntk.mean(), nngp.error(), ntk.error()};
}

}  // namespace

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  check_finite(x, "x");
  return run(network, x, x.size(), x.size(), x.size() * (x.size() + 1) / 2, options,
             [&](auto& computation, const auto& target) { computation.symmetric(x, target); });
}

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                        const GramOptions& options) {
  check_finite(x1, "x1");
  check_finite(x2, "x2");
  if (x1.shape() != x2.shape() || x1.channels() != x2.channels())
    throw ArgumentError(
        fmt::format("gram: x1 and x2 must have equal shapes, got {} with {} channels and {} with {}",
                    to_string(x1.shape()), x1.channels(), to_string(x2.shape()), x2.channels()));
  return run(network, x1, x1.size(), x2.size(), x1.size() * x2.size(), options,
             [&](auto& computation, const auto& target) { computation.rectangular(x1, x2, target); });
}

template <typename Scalar>
GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                 const GramOptions& options) {
  check_finite(x, "x");
  return run(network, x, x.size(), 1, x.size(), options,
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
