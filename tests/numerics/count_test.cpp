#include "numerics/count.hpp"

#include <doctest/doctest.h>

#include <cmath>

using widelimit::ArgumentError;
using widelimit::numerics::checked_count;

TEST_CASE("count: real numbers within the range become counts") {
  CHECK(checked_count(0, 10, "steps") == 0);
  CHECK(checked_count(10, 10, "steps") == 10);
  CHECK(checked_count(1e15, 1e15, "steps") == 1'000'000'000'000'000);
}

TEST_CASE("count: what no count can hold is an error that says what it counts") {
  CHECK_THROWS_WITH_AS(checked_count(1e30, 1e9, "steps of 1e-20 up to 1"),
                       "steps of 1e-20 up to 1: expected 0 to 1e+09, got 1e+30", ArgumentError);
  CHECK_THROWS_WITH_AS(checked_count(-1, 1e9, "blocks"), "blocks: expected 0 to 1e+09, got -1",
                       ArgumentError);
  CHECK_THROWS_AS(checked_count(std::nan(""), 1e9, "blocks"), ArgumentError);
  CHECK_THROWS_AS(checked_count(HUGE_VAL, 1e9, "blocks"), ArgumentError);
}
