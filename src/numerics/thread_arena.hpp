#pragma once

#include <tbb/task_arena.h>

#include <memory>

namespace widelimit::numerics {

/// False in a process that was forked from one that has asked: it has none of its parent's threads, while oneTBB goes
/// on to wait for them and for locks that they held. Such a process computes on the thread that calls.
[[nodiscard]] bool has_threads();

/// So many threads for the tasks of one caller: others' tasks are never run in between. Arenas are kept and given to
/// the next caller who wants as many threads, since oneTBB (2021.8) loses 7 KiB with every one that ends.
class ThreadArena {
 public:
  /// `threads` >= 1.
  explicit ThreadArena(int threads);
  ~ThreadArena();
  ThreadArena(const ThreadArena&) = delete;
  ThreadArena& operator=(const ThreadArena&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  template <typename Body>
  auto execute(const Body& body) {
    if (!has_threads()) return body();
    return arena_->execute(body);
  }

 private:
  int threads_;
  std::unique_ptr<tbb::task_arena> arena_;  ///< Null without threads.
};

}  // namespace widelimit::numerics
