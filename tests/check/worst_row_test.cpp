#include "check/worst_row.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace widelimit::check;

TEST_CASE("worst row: the entry with the largest error over its tolerance") {
  WorstRow worst;
  worst.add(1, 1.1, 1);
  worst.add(2, 2.05, 0.1);
  worst.add(3, 3.2, 1);
  const CheckRow row = worst.named("array");
  CHECK(row.name == "array");
  CHECK(row.expected == 2);
  CHECK(row.computed == 2.05);
  CHECK(row.error == doctest::Approx(0.05));
  CHECK(row.tolerance == 0.1);
  CHECK(row.passed);
}

TEST_CASE("worst row: an exact entry passes a tolerance of 0, another fails it") {
  CHECK(compared("", 2, 2, 0).passed);
  CHECK_FALSE(compared("", 2, 2 + 1e-15, 0).passed);
  WorstRow worst;
  worst.add(2, 2, 0);
  worst.add(1, 1 + 1e-9, 1);
  CHECK(worst.named("").expected == 1);
  worst.add(2, 2 + 1e-15, 0);
  CHECK_FALSE(worst.named("").passed);
}

TEST_CASE("worst row: no number agrees with no number, and with nothing else") {
  const double none = std::nan("");
  CHECK(compared("", none, none, 0).passed);
  for (const auto& [expected, computed] :
       {std::pair{1.0, none}, std::pair{none, 1.0}, std::pair{1.0, HUGE_VAL}}) {
    CHECK_FALSE(compared("", expected, computed, 1).passed);
    WorstRow worst;
    worst.add(expected, computed, 1);
    worst.add(1, 1.5, 1);
    CHECK_FALSE(worst.named("").passed);
  }
}

TEST_CASE("worst row: sampled numbers may differ by four combined standard errors") {
  WorstRow within, beyond;
  within.add_sampled({1, 0.3}, {2.99, 0.4});
  beyond.add_sampled({1, 0.3}, {3.01, 0.4});
  CHECK(within.named("").passed);
  CHECK_FALSE(beyond.named("").passed);
}

TEST_CASE("worst row: a case that could not be computed fails and says why") {
  const CheckRow row = failed_row("case", "no inputs");
  CHECK(row.name == "case: no inputs");
  CHECK_FALSE(row.passed);
  CHECK(std::isnan(row.computed));
}
