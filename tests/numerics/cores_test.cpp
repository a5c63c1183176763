#include "widelimit/numerics/cores.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include "numerics/blas_threads.hpp"

using namespace widelimit::numerics;

TEST_CASE("cores: threads are as many as this process has cores, not the machine") {
  cpu_set_t all, one;
  CPU_ZERO(&all);
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;  // more cores than such a set has room for
  CHECK(own_cores() == CPU_COUNT(&all));
  CHECK(own_cores() <= machine_cores());
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const int bound = own_cores(), threads = resolve_threads(0, "test");
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
  CHECK(bound == 1);
  CHECK(threads == 1);
  CHECK(resolve_threads(3, "test") == 3);
}
