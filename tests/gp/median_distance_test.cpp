#include "widelimit/gp/median_distance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using widelimit::gp::median_distance;
using widelimit::gp_test::random_matrix;

TEST_CASE("median distance: of the pairs that differ, in root mean squares") {
  const Matrix<double> x = random_matrix(31, 4, 1);
  std::vector<double> distances;
  for (Index i = 0; i < 31; ++i)
    for (Index j = 0; j < i; ++j) distances.push_back((x.row(i) - x.row(j)).norm() / 2);
  std::ranges::sort(distances);
  CHECK(*median_distance(Inputs<double>(x)) ==
        doctest::Approx(distances[distances.size() / 2]).epsilon(1e-14));
  CHECK(*median_distance(Inputs<double>(Matrix<double>{{0.0, 0.0}, {0.0, 0.0}, {3.0, 4.0}})) ==
        doctest::Approx(5 / std::sqrt(2.0)));
  // A distance that products of such numbers would lose.
  CHECK(*median_distance(Inputs<double>(Matrix<double>{{1e9}, {1e9 + 1}})) == 1);
}

TEST_CASE("median distance: nothing where there is none") {
  CHECK_FALSE(median_distance(Inputs<double>(Matrix<double>{{1.0}})).has_value());
  CHECK_FALSE(median_distance(Inputs<double>(Matrix<double>{{1.0}, {1.0}})).has_value());
  CHECK_FALSE(median_distance(Inputs<double>(std::vector<Matrix<double>>{Matrix<double>{{1.0}},
                                                                         Matrix<double>{{1.0}, {2.0}}}))
                  .has_value());
}

TEST_CASE("median distance: numbers that are not finite are named, not left out") {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    CHECK_THROWS_WITH_AS((void)median_distance(Inputs<double>(Matrix<double>{{1.0}, {value}, {2.0}})),
                         "median_distance: x must be finite, got a number that is not in input 1",
                         ArgumentError);
}
