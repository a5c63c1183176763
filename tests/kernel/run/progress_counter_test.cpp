// How far a computation is, as its caller hears it.
#include "kernel/run/progress_counter.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace widelimit::testing::progress_counter_test {
namespace {

TEST_CASE("ProgressCounter: never counts backwards, and ends with all pairs") {
  constexpr Index threads = 4, parts = 200;
  std::vector<Index> reports;
  GramOptions options;
  options.progress = [&](const GramProgress& progress) {
    CHECK(progress.total == threads * parts * 3);
    reports.push_back(progress.done);
  };
  ProgressCounter counter(options, threads * parts * 3);
  std::vector<std::thread> running;
  for (Index t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (Index part = 0; part < parts; ++part) counter.add(3);
    });
  for (std::thread& thread : running) thread.join();
  REQUIRE_FALSE(reports.empty());
  CHECK(std::is_sorted(reports.begin(), reports.end()));
  CHECK(reports.back() == counter.total());
  CHECK(counter.done() == counter.total());
}

TEST_CASE("ProgressCounter: counts without anybody who hears it") {
  const GramOptions options;
  ProgressCounter counter(options, 5);
  counter.add(2);
  CHECK(counter.done() == 2);
}

}  // namespace
}  // namespace widelimit::testing::progress_counter_test
