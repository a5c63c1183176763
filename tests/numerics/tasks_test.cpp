#include "numerics/tasks.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

using namespace widelimit;

TEST_CASE("for_each_task: every task once, on the threads asked for, with progress to the end") {
  for (const int threads : {0, 1, 2}) {
    std::vector<std::atomic<int>> times(100);
    std::ptrdiff_t last = 0;
    int most = 0;
    numerics::on_threads(threads, [&] {
      most = tbb::this_task_arena::max_concurrency();
      const auto progress = [&last](std::ptrdiff_t done, std::ptrdiff_t all) {
        CHECK(done == last + 1);
        CHECK(all == 100);
        last = done;
      };
      numerics::for_each_task(100, {.progress = progress},
                              [&](std::ptrdiff_t i) { ++times[static_cast<std::size_t>(i)]; });
    });
    CHECK(last == 100);
    for (const auto& count : times) CHECK(count == 1);
    if (threads > 0) CHECK(most <= threads);
  }
  CHECK(numerics::on_threads(1, [] { return 7; }) == 7);
}

TEST_CASE("for_each_task: no task begins once a stop was asked for") {
  std::stop_source source;
  std::atomic<int> ran = 0;
  const auto run = [&] {
    numerics::on_threads(1, [&] {
      numerics::for_each_task(1000, {.stop = source.get_token()}, [&](std::ptrdiff_t) {
        if (++ran == 10) source.request_stop();
      });
    });
  };
  CHECK_THROWS_AS(run(), Cancelled);
  CHECK(ran == 10);
}
