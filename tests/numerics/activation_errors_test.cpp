// What closed forms refuse: wrong arguments, and expectations that diverge.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::numerics;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("gaussian: a diverging expectation is an error that names the variances") {
  // 2 rate p (1 + correlation) < 1 at perfect correlation: the limit is p = 1 / (4 rate) = 2.5.
  const auto growing = gaussian(1, 0.1);
  CHECK(std::isfinite(growing->dual(2.49, 2.49, 2.49).value));
  CHECK_THROWS_AS((void)growing->dual(2.51, 2.51, 2.51), NumericalError);
  CHECK(std::isfinite(growing->dual(4.9, 4.9, 0).value));
  CHECK_THROWS_WITH_AS(
      (void)growing->dual(6, 7, 0),
      "gaussian: the expectation of exp(0.1 x^2) diverges for variances 6 and 7 with covariance 0; "
      "variances must stay below 1/(4 rate) = 2.5: use a negative rate or smaller weight variances",
      NumericalError);
  CHECK(std::isnan(growing->dual(not_a_number, 1, 0).value));
}

TEST_CASE("closed forms: wrong arguments") {
  CHECK_THROWS_WITH_AS((void)leaky_relu(not_a_number), "leaky_relu: slope must be a finite number, got nan",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)homogeneous(infinity, 1),
                       "homogeneous: the negative slope must be a finite number, got inf", ArgumentError);
  CHECK_THROWS_WITH_AS((void)homogeneous(0, -infinity),
                       "homogeneous: the positive slope must be a finite number, got -inf", ArgumentError);
  CHECK_THROWS_WITH_AS((void)numerics::sin(1, infinity, 0), "sin: frequency must be a finite number, got inf",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)numerics::cos(not_a_number), "cos: amplitude must be a finite number, got nan",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)numerics::cos(1, 1, not_a_number), "cos: phase must be a finite number, got nan",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)rbf(0), "rbf: gamma must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)rbf(-1), "rbf: gamma must be positive and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)rbf(infinity), "rbf: gamma must be positive and finite, got inf", ArgumentError);
  CHECK_THROWS_WITH_AS((void)exponential(1, not_a_number),
                       "exponential: rate must be a finite number, got nan", ArgumentError);
  CHECK_THROWS_WITH_AS((void)erf(1, 1, infinity), "erf: c must be a finite number, got inf", ArgumentError);
  CHECK_THROWS_WITH_AS((void)monomial(65), "monomial: degree must be within 0 .. 64, got 65", ArgumentError);
  CHECK_THROWS_WITH_AS((void)gaussian(infinity), "gaussian: amplitude must be a finite number, got inf",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)polynomial({}),
                       "polynomial: coefficients must hold 1 to 65 numbers, lowest order first, got 0",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)polynomial(std::vector<double>(66, 1.0)),
                       "polynomial: coefficients must hold 1 to 65 numbers, lowest order first, got 66",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)polynomial({1, not_a_number}),
                       "polynomial: coefficients[1] must be a finite number, got nan", ArgumentError);
  CHECK_THROWS_WITH_AS((void)hermite(-1), "hermite: degree must be within 0 .. 64, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)hermite(65), "hermite: degree must be within 0 .. 64, got 65", ArgumentError);
  CHECK_THROWS_WITH_AS((void)rectified_monomial(33),
                       "rectified_monomial: degree must be within 0 .. 32, got 33", ArgumentError);
  CHECK_THROWS_WITH_AS((void)rectified_monomial(-1),
                       "rectified_monomial: degree must be within 0 .. 32, got -1", ArgumentError);
}

}  // namespace
