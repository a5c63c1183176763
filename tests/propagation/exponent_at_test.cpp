#include "widelimit/propagation/exponent_at.hpp"

#include <doctest/doctest.h>

#include "propagation/parameters_with.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using widelimit::propagation_test::parameters_with;

TEST_CASE("exponents at a point: at integers those of the network, between them between") {
  const Parameters parameters = parameters_with(0.4, 0.6, 1.5, 64);
  ExponentOptions options;
  options.depth = 8;
  ParameterPoint point = parameter_point(parameters, options);
  CHECK(exponent_at(Exponent::gradient, point) == exponent(Exponent::gradient, parameters, options));
  set_coordinate(point, Coordinate::tokens, 128);
  const double at_128 = exponent_at(Exponent::gradient, point);
  CHECK(at_128 == exponent(Exponent::gradient, parameters_with(0.4, 0.6, 1.5, 128), options));
  set_coordinate(point, Coordinate::tokens, 128.5);
  const double between = exponent_at(Exponent::gradient, point);
  set_coordinate(point, Coordinate::tokens, 129);
  const double at_129 = exponent_at(Exponent::gradient, point);
  CHECK((at_128 - between) * (between - at_129) > 0);
}

TEST_CASE("exponents at a point: every coordinate moves what it names, and only some the MLP") {
  using enum Coordinate;
  ParameterPoint point = parameter_point(parameters_with(0.4, 0.6, 1.5), {});
  set_coordinate(point, alpha, 0.3);
  CHECK(point.parameters.alpha_A == 0.3);
  CHECK(point.parameters.alpha_M == 0.3);
  set_coordinate(point, sigma_A, 2);
  set_coordinate(point, depth, 7.5);
  set_coordinate(point, mlp_depth, 3);
  CHECK(point.parameters.sigma_A == 2);
  CHECK(point.options.depth == 7.5);
  CHECK(point.parameters.mlp_depth == 3);
  CHECK(changes_mlp(sigma_w));
  CHECK_FALSE(changes_mlp(alpha));
  const MlpStatistics mlp = mlp_statistics(point.parameters);
  CHECK(exponent_at(Exponent::angle, point, mlp) == exponent_at(Exponent::angle, point));
  CHECK_THROWS_AS(set_coordinate(point, tokens, -1), ArgumentError);
}
