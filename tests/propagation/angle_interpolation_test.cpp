#include "propagation/angle_interpolation.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/propagation/block_map.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

TEST_CASE("angle interpolation: covariance maps of MLPs at all gaps, small ones relative to themselves") {
  for (const char* activation : {"tanh", "relu", "erf", "gelu"})
    for (const double gain : {0.5, 2.0, 6.0}) {
      CAPTURE(activation);
      CAPTURE(gain);
      Parameters parameters;
      parameters.sigma_w = gain;
      parameters.activation = activation_named(activation);
      const MlpMap map(parameters);
      const auto found = AngleInterpolation::of([&](double gap) { return map.output_gap(gap); });
      REQUIRE(found.has_value());
      for (const double gap : {1e-14, 1e-9, 1e-5, 0.003, 0.1, 0.5, 0.99, 1.0, 1.7, 1.99, 2.0}) {
        CAPTURE(gap);
        CHECK((*found)(gap) == Approx(map.output_gap(gap)).epsilon(1e-9));
      }
      CHECK((*found)(0) == 0);
    }
}

TEST_CASE("angle interpolation: functions that jump have none") {
  CHECK_FALSE(AngleInterpolation::of([](double gap) { return gap < 0.7 ? gap : 2.0; }).has_value());
  // sign: the root of the gap, whose quotient has no limit.
  CHECK_FALSE(AngleInterpolation::of([](double gap) { return std::sqrt(gap); }).has_value());
}
