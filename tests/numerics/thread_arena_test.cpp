#include "numerics/thread_arena.hpp"

#include <doctest/doctest.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

using widelimit::numerics::ThreadArena;

namespace {

/// Pages of memory that the process holds.
long resident_pages() {
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

/// How many tasks ran.
int run_tasks(int threads) {
  std::atomic<int> done = 0;
  ThreadArena arena(threads);
  CHECK(arena.threads() == threads);
  arena.execute([&] { tbb::parallel_for(0, 8, [&](int) { ++done; }); });
  return done;
}

}  // namespace

TEST_CASE("arenas are kept for the next caller: thousands of them take no memory") {
  for (int i = 0; i < 200; ++i) CHECK(run_tasks(2) == 8);
  const long before = resident_pages();
  int done = 0;
  for (int i = 0; i < 3000; ++i) done += run_tasks(2);
  CHECK(done == 3000 * 8);
  // oneTBB's own arenas would have taken 20 MiB.
  CHECK(resident_pages() - before < 1024);
}

TEST_CASE("callers at the same time have arenas of their own, within each other too, and after errors") {
  std::vector<std::jthread> callers;
  std::atomic<int> done = 0;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) done += run_tasks(2);
    });
  callers.clear();
  CHECK(done == 8 * 50 * 8);
  ThreadArena outer(2);
  CHECK(outer.execute([] { return run_tasks(2); }) == 8);
  CHECK_THROWS_AS(outer.execute([] { throw std::runtime_error("of a task"); }), std::runtime_error);
  CHECK(run_tasks(2) == 8);
}
