#include "widelimit/pace.hpp"

#include <doctest/doctest.h>

namespace widelimit {
namespace {

TEST_CASE("pace: what comes before the parts, and parts that end together, do not slow it down") {
  // 16 threads need 5 s before the first part and 1 s for each: 16 parts a second.
  constexpr int threads = 16, parts = 160;
  Pace pace(threads);
  for (int part = 1; part <= parts; ++part) {
    pace.take(part, 5 + (part + threads - 1) / threads);
    CAPTURE(part);
    if (part < 2 * threads) {
      CHECK_FALSE(pace.rate());
      continue;
    }
    REQUIRE(pace.rate());
    const double left = (parts - part) / *pace.rate();
    CHECK(left == doctest::Approx((parts - part) / 16.0).epsilon(1e-9));
  }
  CHECK(*pace.rate() == doctest::Approx(16));
}

TEST_CASE("pace: one thread, parts of unlike sizes") {
  Pace pace(1);
  pace.take(10, 3);
  CHECK_FALSE(pace.rate());
  pace.take(30, 4);
  CHECK(*pace.rate() == doctest::Approx(20));
  pace.take(32, 4.2);
  CHECK(*pace.rate() == doctest::Approx(22 / 1.2));
}

TEST_CASE("pace: parts that end at one time have none") {
  Pace pace(1);
  pace.take(1, 2);
  pace.take(2, 2);
  CHECK_FALSE(pace.rate());
}

}  // namespace
}  // namespace widelimit
