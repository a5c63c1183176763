// What formulas call on numbers of the machine.
#include "widelimit/numerics/formula/number.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace widelimit::numerics::formula;

TEST_CASE("numbers of formulas: fused rounds once") {
  const double a = 1 + std::ldexp(1.0, -30);
  // a^2 is 1 + 2^-29 + 2^-60, whose last part a product alone loses.
  CHECK(fused(a, a, -1 - std::ldexp(1.0, -29)) == std::ldexp(1.0, -60));
}

TEST_CASE("numbers of formulas: bounds, choices and comparisons") {
  CHECK(at_least(0.0, -1e-20) == 0);
  CHECK(at_least(0.0, 2.0) == 2);
  CHECK(std::isnan(at_least(0.0, std::numeric_limits<double>::quiet_NaN())));
  CHECK(is_less(1.0f, 2.0f));
  CHECK(!is_less(2.0, 2.0));
  CHECK(choose(both(true, false), 1.0, 2.0) == 2);
  CHECK(choose(both(true, true), 1.0, 2.0) == 1);
  CHECK(epsilon_of(1.0f) == std::ldexp(1.0, -23));
  CHECK(epsilon_of(1.0) == std::ldexp(1.0, -52));
}

TEST_CASE("numbers of formulas: an angle between 0 and pi, also on the axes") {
  CHECK(angle(0.0, 1.0) == 0);
  CHECK(angle(1.0, 0.0) == doctest::Approx(std::acos(0.0)).epsilon(1e-15));
  CHECK(angle(0.0, -1.0) == doctest::Approx(std::acos(-1.0)).epsilon(1e-15));
}

TEST_CASE("numbers of formulas: e^x - 1 keeps what a small x says") {
  CHECK(exponential_less_one(1e-20) == 1e-20);
  CHECK(widelimit::numerics::formula::exponential(0.0) == 1);
}
