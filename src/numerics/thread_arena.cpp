#include "numerics/thread_arena.hpp"

#include <pthread.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace widelimit::numerics {
namespace {

struct IdleArenas {
  std::mutex mutex;
  std::multimap<int, std::unique_ptr<tbb::task_arena>> by_threads;
};

/// The pool is never destroyed, because oneTBB itself may have ended before static objects do.
IdleArenas& idle_arenas() {
  static auto& idle = *new IdleArenas;
  return idle;
}

std::atomic<bool> is_forked = false;

std::unique_ptr<tbb::task_arena> take_arena(int threads) {
  IdleArenas& idle = idle_arenas();
  const std::scoped_lock lock(idle.mutex);
  const auto found = idle.by_threads.find(threads);
  // oneTBB would warn of more than there are cores, and have none of them.
  const auto most = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  if (found == idle.by_threads.end())
    return std::make_unique<tbb::task_arena>(std::min(threads, static_cast<int>(most)));
  return std::move(idle.by_threads.extract(found).mapped());
}

}  // namespace

bool has_threads() {
  // The handler is registered by the first question and runs in every child that is forked later.
  [[maybe_unused]] static const int is_asked_when_forked =
      pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  return !is_forked;
}

ThreadArena::ThreadArena(int threads)
    : threads_{has_threads() ? threads : 1}, arena_{has_threads() ? take_arena(threads) : nullptr} {}

ThreadArena::~ThreadArena() {
  if (!has_threads() || !arena_) {
    // A forked child cannot know whether the arena's threads exist, so the arena is left as it is.
    static_cast<void>(arena_.release());
    return;
  }
  IdleArenas& idle = idle_arenas();
  const std::scoped_lock lock(idle.mutex);
  idle.by_threads.emplace(threads_, std::move(arena_));
}

}  // namespace widelimit::numerics
