#include "kernel/run/cost_measurement.hpp"

#include <sys/mman.h>
#include <tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>

#include "kernel/run/input_recording.hpp"
#include "kernel/run/pair_worker.hpp"
#include "kernel/run/thread_time.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/tasks.hpp"
#include "numerics/thread_arena.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Sides of tiles that are measured: their tiles differ, and so do the inputs of each.
constexpr Index sides_measured = 3;
/// Where a tile has few inputs, this many are run at least: some cost more than others.
constexpr Index fewest_inputs = 8;

/// Items that some threads have done, and their times summed over these.
class Tally {
 public:
  void add(Index count, const Cost& cost) {
    const std::scoped_lock lock(mutex_);
    count_ += count;
    total_.seconds += cost.seconds;
    total_.processor_seconds += cost.processor_seconds;
  }
  [[nodiscard]] Index count() const { return count_; }
  /// Of one item, while so many threads work on others.
  [[nodiscard]] Cost each(int threads) const {
    const auto count = static_cast<double>(std::max<Index>(count_, 1));
    return {total_.seconds / (count * threads), total_.processor_seconds / count};
  }

 private:
  std::mutex mutex_;
  Index count_ = 0;
  Cost total_;
};

/// Measures the costs of one plan, computing in Scalar.
template <typename Scalar, typename Result>
class CostMeasurement {
 public:
  CostMeasurement(const GramPlan& plan, const Inputs<Result>& x, const GramOptions& options, double seconds)
      : plan_{plan},
        x_(x, plan, "x"),
        options_{options},
        arena_(numerics::resolve_threads(options.threads, "explain")),
        threads_{numerics::threads_at_once(arena_.threads())},
        seconds_{seconds} {}

  MeasuredCosts run(StepTimes times) {
    const numerics::BlasThreads one_thread_a_task(1, threads_);
    MeasuredCosts costs;
    costs.start = warm_up_states();
    choose_sides();
    costs.input = measure_states();
    add(costs.start, warm_up_pairs());
    costs.pair = measure_pairs(nullptr);
    if (times == StepTimes::measured) time_lines(costs);
    return costs;
  }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  static void add(Cost& sum, const Cost& cost) {
    sum.seconds += cost.seconds;
    sum.processor_seconds += cost.processor_seconds;
  }

  [[nodiscard]] Deadline deadline() const {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(seconds_ / 2));
  }

  void check_stop() const {
    if (options_.stop.stop_requested()) throw Cancelled("explain: stopped on request");
  }

  /// What the first call takes beyond the second one.
  template <typename Body>
  Cost first_beyond_second(const Body& body, Cost& second) {
    const ThreadTime first_time;
    body();
    const Cost first = first_time.passed();
    const ThreadTime second_time;
    body();
    second = second_time.passed();
    return {std::max(first.seconds - second.seconds, 0.0),
            std::max(first.processor_seconds - second.processor_seconds, 0.0)};
  }

  Cost warm_up_states() {
    std::optional<StateWorker<Scalar>> worker;
    const Index middle = x_.size() / 2;
    StateBlock<Scalar> state({&x_.layout(middle)}, middle);
    return first_beyond_second(
        [&] {
          check_stop();
          if (!worker) worker.emplace(plan_, StopRequest(options_.stop));
          record_input(*worker, plan_, x_, middle, state[middle]);
        },
        one_state_);
  }

  /// The inputs of each shape are cut into sides as in a Gram matrix; evenly spaced ones of them are measured.
  void choose_sides() {
    std::vector<TileRange> all;
    for (Index begin = 0; begin < x_.size();) {
      const Index most = plan_.tile_sides.at(x_.shape(begin));
      Index end = begin + 1;
      while (end < x_.size() && end - begin < most &&
             (plan_.vectors_only || x_.shape(end) == x_.shape(begin)))
        ++end;
      all.push_back({begin, end});
      begin = end;
    }
    const auto count = static_cast<Index>(all.size());
    // As many inputs as the time allows, if their states take long.
    const double affordable = seconds_ / 2 * threads_ / std::max(one_state_.processor_seconds, 1e-9) /
                              static_cast<double>(all.front().size());
    const Index wanted = std::max<Index>(sides_measured, fewest_inputs / all.front().size());
    const Index most = std::clamp<Index>(static_cast<Index>(std::min(affordable, 1e6)), 2, wanted);
    const Index chosen = std::min(count, most);
    for (Index k = 0; k < chosen; ++k) {
      const TileRange& side = all[static_cast<std::size_t>(k * count / chosen)];
      const auto first = static_cast<Index>(inputs_.size());
      for (Index i = side.begin; i < side.end; ++i) inputs_.push_back(i);
      sides_.push_back({first, static_cast<Index>(inputs_.size())});
    }
  }

  Cost measure_states() {
    std::vector<const StateLayout*> layouts;
    for (const Index i : inputs_) layouts.push_back(&x_.layout(i));
    states_.emplace(layouts, 0);
    Tally tally;
    std::atomic<Index> next = 0;
    const auto count = static_cast<Index>(inputs_.size());
    on_threads([&] {
      StateWorker<Scalar> worker(plan_, StopRequest(options_.stop));
      const ThreadTime time;
      Index done = 0;
      for (Index k = next++; k < count; k = next++, ++done) {
        check_stop();
        record_input(worker, plan_, x_, inputs_[static_cast<std::size_t>(k)], (*states_)[k]);
      }
      tally.add(done, time.passed());
    });
    return tally.each(threads_);
  }

  Cost warm_up_pairs() {
    std::optional<PairWorker<Scalar>> worker;
    Matrix<Result> result(2, 1);
    const Index place = 0;
    const StateRange<Scalar> first{&*states_, 0, 1};
    Cost ignored;
    return first_beyond_second(
        [&] {
          check_stop();
          if (!worker) worker.emplace(plan_, TileSize{1, 1}, StopRequest(options_.stop));
          static_cast<void>(
              worker->run(first, first, Batches::two, {{&place, 1}, {&place, 1}}, target_in(result, 1)));
        },
        ignored);
  }

  /// The kernels that are wanted, each a matrix of `rows` rows in `result`.
  [[nodiscard]] GramTarget<Result> target_in(Matrix<Result>& result, Index rows) const {
    Result* const first = result.data();
    Result* const second = first + rows * result.cols();
    switch (options_.kernels) {
      case Kernels::nngp:
        return {first, nullptr, result.cols()};
      case Kernels::ntk:
        return {nullptr, first, result.cols()};
      case Kernels::both:
        break;
    }
    return {first, second, result.cols()};
  }

  struct TileRange {
    Index begin;
    Index end;
    [[nodiscard]] Index size() const { return end - begin; }
  };
  struct Sides {
    TileRange left;
    TileRange right;
  };

  /// Pairs of different sides, which nearly all tiles of many inputs are; the diagonal if there is one side only.
  [[nodiscard]] std::vector<Sides> tiles() const {
    std::vector<Sides> tiles;
    for (std::size_t i = 0; i < sides_.size(); ++i)
      for (std::size_t j = i + 1; j < sides_.size(); ++j) tiles.push_back({sides_[i], sides_[j]});
    if (tiles.empty()) tiles.push_back({sides_.front(), sides_.front()});
    return tiles;
  }

  /// Each thread computes all tiles again and again, into a result of its own, until the time is over. Pairs of vectors
  /// take no longer than touching the memory of their result for the first time, so that counts too.
  Cost measure_pairs(std::vector<double>* seconds_per_node) {
    const std::vector<Sides> all = tiles();
    TileSize most{1, 1};
    for (const Sides& tile : all) most = most.joined({tile.left.size(), tile.right.size()});
    const auto inputs = static_cast<Index>(inputs_.size());
    std::vector<Index> numbers(inputs_.size());
    std::iota(numbers.begin(), numbers.end(), Index{0});
    const std::span<const Index> places = numbers;
    const auto place_of = [&](const TileRange& side) {
      return places.subspan(static_cast<std::size_t>(side.begin), static_cast<std::size_t>(side.size()));
    };
    Tally tally;
    std::atomic<std::size_t> next_thread = 0;
    std::mutex adding;
    const Deadline end = deadline();
    on_threads([&] {
      PairWorker<Scalar> worker(plan_, most, StopRequest(options_.stop));
      if (seconds_per_node != nullptr) worker.start_timer();
      Matrix<Result> result(2 * inputs, inputs);
      Index pairs = 0;
      Cost cost;
      // Threads begin with different tiles, so that each is measured where there is time for one only.
      const std::size_t begin = next_thread++;
      for (std::size_t t = 0;; ++t) {
        const bool may_end = plan_.vectors_only ? t % all.size() == 0 : true;
        if (t > 0 && may_end && std::chrono::steady_clock::now() >= end) break;
        check_stop();
        if (plan_.vectors_only && t % all.size() == 0) give_pages_back(result);
        const Sides& tile = all[(begin + t) % all.size()];
        const StateRange<Scalar> left{&*states_, tile.left.begin, tile.left.end},
            right{&*states_, tile.right.begin, tile.right.end};
        const ThreadTime time;
        // Numbers that are not finite are what gram() would report; they take no other time.
        static_cast<void>(worker.run(left, right, Batches::one, {place_of(tile.left), place_of(tile.right)},
                                     target_in(result, inputs)));
        add(cost, time.passed());
        const Index side = tile.left.size();
        pairs += tile.left.begin == tile.right.begin ? side * (side + 1) / 2 : side * tile.right.size();
      }
      tally.add(pairs, cost);
      if (seconds_per_node == nullptr) return;
      const std::scoped_lock lock(adding);
      worker.add_seconds(*seconds_per_node);
    });
    pairs_ = tally.count();
    return tally.each(threads_);
  }

  /// What is written next is touched for the first time again.
  static void give_pages_back(Matrix<Result>& matrix) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGE_SIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(matrix.data());
    const std::uintptr_t end = begin + static_cast<std::uintptr_t>(matrix.size()) * sizeof(Result),
                         first = (begin + page - 1) / page * page, last = end / page * page;
    // It fails only for memory that is locked, which costs nothing to touch.
    if (first < last) static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED));
  }

  /// The time of a pair comes from the run without timers, because reading a clock around every step slows small steps
  /// down.
  void time_lines(MeasuredCosts& costs) {
    costs.seconds_per_line.resize(plan_.program.graph.nodes.size());
    static_cast<void>(measure_pairs(&costs.seconds_per_line));
    for (double& seconds : costs.seconds_per_line) seconds /= static_cast<double>(pairs_);
  }

  template <typename Body>
  void on_threads(const Body& body) {
    if (!numerics::has_threads()) return body();
    // Every thread takes one task: a task ends only when there is nothing left to do.
    arena_.execute([&] {
      tbb::parallel_for(
          0, threads_, [&](int) { body(); }, tbb::simple_partitioner());
    });
  }

  const GramPlan& plan_;
  OrderedInputs<Result> x_;
  const GramOptions& options_;
  numerics::ThreadArena arena_;
  int threads_;
  double seconds_;
  Cost one_state_;
  std::vector<Index> inputs_;     ///< Those that are measured.
  std::vector<TileRange> sides_;  ///< Of tiles, counted within `inputs_`.
  std::optional<StateBlock<Scalar>> states_;
  Index pairs_ = 0;
};

}  // namespace

template <typename Result>
MeasuredCosts measure_costs(const GramPlan& plan, const Inputs<Result>& x, const GramOptions& options,
                            double seconds, StepTimes times) {
  if constexpr (!std::is_same_v<Result, double>)
    if (plan.in_double) return CostMeasurement<double, Result>(plan, x, options, seconds).run(times);
  return CostMeasurement<Result, Result>(plan, x, options, seconds).run(times);
}

Index inputs_to_measure(const GramPlan& plan) {
  return std::max(sides_measured * plan.largest_tile_side, fewest_inputs);
}

template MeasuredCosts measure_costs(const GramPlan&, const Inputs<float>&, const GramOptions&, double,
                                     StepTimes);
template MeasuredCosts measure_costs(const GramPlan&, const Inputs<double>&, const GramOptions&, double,
                                     StepTimes);

}  // namespace widelimit
