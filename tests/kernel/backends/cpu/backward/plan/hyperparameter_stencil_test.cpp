// Differences of a function along a line, against derivatives of polynomials.
#include "kernel/backends/cpu/backward/plan/hyperparameter_stencil.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace widelimit::testing::hyperparameter_stencil_test {
namespace {

enum class Accuracy { fine, coarse };

/// What a stencil makes of x^power, of steps of 1.
double difference(const Stencil& stencil, int power, Accuracy accuracy) {
  double sum = 0;
  for (const StencilPlace& place : stencil)
    sum += (accuracy == Accuracy::fine ? place.weight : place.coarse_weight) * std::pow(place.steps, power);
  return sum;
}

void check_orders(const Stencil& stencil) {
  for (int power = 0; power <= 8; ++power)
    CHECK(difference(stencil, power, Accuracy::fine) == doctest::Approx(power == 1).epsilon(1e-7).scale(1));
  for (int power = 0; power <= 4; ++power)
    CHECK(difference(stencil, power, Accuracy::coarse) ==
          doctest::Approx(power == 1).epsilon(1e-11).scale(1));
  CHECK(std::abs(difference(stencil, 9, Accuracy::fine)) > 1);
  CHECK(std::abs(difference(stencil, 5, Accuracy::coarse)) > 1);
}

TEST_CASE("stencils: exact for polynomials up to their order, and for no others") {
  const auto central = stencil_in_range(1, [](double) { return true; });
  REQUIRE(central);
  check_orders(*central);
  const auto upward = stencil_in_range(1, [](double shift) { return shift >= 0; });
  REQUIRE(upward);
  check_orders(*upward);
  const auto downward = stencil_in_range(1, [](double shift) { return shift <= 0; });
  REQUIRE(downward);
  check_orders(*downward);
}

TEST_CASE("stencils stay in the range, and there is none where it is too narrow") {
  const auto is_in_range = [](double shift) { return shift >= -0.3 && shift <= 0.9; };
  const auto stencil = stencil_in_range(0.1, is_in_range);
  REQUIRE(stencil);
  for (const StencilPlace& place : *stencil) CHECK(is_in_range(0.1 * place.steps));
  CHECK_FALSE(stencil_in_range(0.2, is_in_range));
}

}  // namespace
}  // namespace widelimit::testing::hyperparameter_stencil_test
