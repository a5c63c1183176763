#pragma once

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "numerics/thread_arena.hpp"
#include "widelimit/run_control.hpp"
#include "widelimit/stop_request.hpp"

/// Tasks on threads: the one way in which the theories use them.
namespace widelimit::numerics {

/// How many threads of an arena of so many can run at once: no more than there are.
inline int threads_at_once(int arena_threads) {
  if (!has_threads()) return 1;
  const auto most = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::min(arena_threads, static_cast<int>(most));
}

/// How many threads the tasks of the calling one have.
inline int threads_here() { return has_threads() ? tbb::this_task_arena::max_concurrency() : 1; }

/// body() with the given number of threads, 0 for all; never more than there are.
template <typename Body>
auto on_threads(int threads, const Body& body) {
  if (threads == 0 || !has_threads()) return body();
  // ThreadArena keeps the tasks of others out; within it at most as many threads work as the caller itself has.
  return ThreadArena(std::min(threads, threads_here())).execute(body);
}

/// body(i) for i < count, `grain` of them at least a thread at a time. Throws Cancelled before the next one
/// once a stop was asked for. `run.threads` is not looked at: see on_threads().
template <typename Body>
void for_each_task(std::ptrdiff_t count, const RunControl& run, const Body& body, std::ptrdiff_t grain = 1) {
  const StopRequest stop(run.stop);
  std::mutex reporting;
  std::ptrdiff_t done = 0;
  const auto run_tasks = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
      // A stop is asked for between tasks only, so a task must not take long.
      stop.check();
      body(i);
      if (!run.progress) continue;
      // Under the lock reports come in the order of their counts.
      const std::lock_guard lock(reporting);
      run.progress(++done, count);
    }
  };
  if (!has_threads()) return run_tasks(0, count);
  tbb::parallel_for(
      tbb::blocked_range<std::ptrdiff_t>(0, count, static_cast<std::size_t>(grain)),
      [&](const tbb::blocked_range<std::ptrdiff_t>& range) { run_tasks(range.begin(), range.end()); });
}

}  // namespace widelimit::numerics
