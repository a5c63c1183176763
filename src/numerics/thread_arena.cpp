#include "numerics/thread_arena.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace widelimit::numerics {
namespace {

struct IdleArenas {
  std::mutex mutex;
  std::multimap<int, std::unique_ptr<tbb::task_arena>> by_threads;
};

/// Never destroyed: oneTBB itself may have ended before.
IdleArenas& idle_arenas() {
  static auto& idle = *new IdleArenas;
  return idle;
}

std::unique_ptr<tbb::task_arena> take_arena(int threads) {
  IdleArenas& idle = idle_arenas();
  const std::scoped_lock lock(idle.mutex);
  const auto found = idle.by_threads.find(threads);
  if (found == idle.by_threads.end()) return std::make_unique<tbb::task_arena>(threads);
  return std::move(idle.by_threads.extract(found).mapped());
}

}  // namespace

ThreadArena::ThreadArena(int threads) : threads_{threads}, arena_{take_arena(threads)} {}

ThreadArena::~ThreadArena() {
  IdleArenas& idle = idle_arenas();
  const std::scoped_lock lock(idle.mutex);
  idle.by_threads.emplace(threads_, std::move(arena_));
}

}  // namespace widelimit::numerics
