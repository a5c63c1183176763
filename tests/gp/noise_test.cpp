#include "widelimit/gp/noise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "widelimit/error.hpp"

using widelimit::ArgumentError;
using namespace widelimit::gp;

TEST_CASE("noise: a relative regulariser scales with the kernel, absolute noise does not") {
  CHECK(noise_variance(RelativeRegulariser(0.1), 4) == 0.4);
  CHECK(noise_variance(AbsoluteNoise(0.1), 4) == 0.1);
  CHECK(noise_variance(AbsoluteNoise(0.1), 0) == 0.1);
  CHECK_THROWS_WITH_AS(
      (void)noise_variance(RelativeRegulariser(0.1), 0),
      "RelativeRegulariser: the Gram matrix must have a positive mean diagonal entry to be relative to, "
      "got 0; give an AbsoluteNoise",
      ArgumentError);
}

TEST_CASE("noise: values that are not positive and finite are rejected") {
  CHECK_THROWS_WITH_AS(RelativeRegulariser(0),
                       "RelativeRegulariser: value must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(AbsoluteNoise(-1e-3),
                       "AbsoluteNoise: variance must be positive and finite, got -0.001", ArgumentError);
  for (const double bad : {-0.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK_THROWS_AS(RelativeRegulariser{bad}, ArgumentError);
    CHECK_THROWS_AS(AbsoluteNoise{bad}, ArgumentError);
  }
  CHECK(RelativeRegulariser(1e-300).value() == 1e-300);
}
