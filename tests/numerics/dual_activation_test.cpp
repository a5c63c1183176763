#include "widelimit/numerics/dual_activation.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;

TEST_CASE("dual_activation: has the duals of its function, and no values") {
  const numerics::ActivationPtr given =
      numerics::dual_activation([](double p, double q, double c) { return numerics::relu()->dual(p, q, c); });
  for (const double c : {-0.9, 0.0, 0.4, 1.0}) {
    const auto expected = numerics::relu()->dual(1, 1.5, c), found = given->dual(1, 1.5, c);
    CHECK(found.value == expected.value);
    CHECK(found.derivative == expected.derivative);
  }
  CHECK_THROWS_AS((void)given->value(1), ArgumentError);
  CHECK_THROWS_AS((void)given->derivative(1), ArgumentError);
  CHECK_THROWS_AS((void)numerics::dual_activation({}), ArgumentError);
}
