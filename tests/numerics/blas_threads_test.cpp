#include "numerics/blas_threads.hpp"

#include <cblas.h>
#include <doctest/doctest.h>

#include <optional>

#include "widelimit/error.hpp"

using widelimit::numerics::BlasThreads;
using widelimit::numerics::resolve_threads;

TEST_CASE("blas threads: the count is held, nests, and comes back") {
  openblas_set_num_threads(3);
  {
    const BlasThreads outer(2);
    CHECK(openblas_get_num_threads() == 2);
    {
      const BlasThreads inner(1);
      CHECK(openblas_get_num_threads() == 1);
    }
    CHECK(openblas_get_num_threads() == 2);
  }
  CHECK(openblas_get_num_threads() == 3);
}

TEST_CASE("blas threads: guards that end in another order than they began restore the first count") {
  openblas_set_num_threads(3);
  std::optional<BlasThreads> older(std::in_place, 2), younger(std::in_place, 1);
  older.reset();
  CHECK(openblas_get_num_threads() == 1);
  younger.reset();
  CHECK(openblas_get_num_threads() == 3);
}

TEST_CASE("blas threads: zero asks for the machine's, fewer is an error") {
  CHECK(resolve_threads(0, "f") >= 1);
  CHECK(resolve_threads(5, "f") == 5);
  CHECK_THROWS_WITH_AS(resolve_threads(-1, "f"),
                       "f: threads must be positive, or 0 for all of the machine's, got -1",
                       widelimit::ArgumentError);
  CHECK_THROWS_WITH_AS(BlasThreads(0), "BlasThreads: count must be at least 1, got 0",
                       widelimit::ArgumentError);
}
