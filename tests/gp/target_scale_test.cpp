#include "widelimit/gp/target_scale.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("target scale: mean 0 and deviation 1 of each output, and back") {
  Matrix<double> targets = random_matrix(50, 3, 1);
  targets.col(1) = 1e6 + 1e-3 * targets.col(1).array();
  targets.col(2).setConstant(0.1);
  const TargetScale scale = TargetScale::fit(targets);
  const Matrix<double> standardised = scale.standardised(targets);
  for (Index c = 0; c < 2; ++c) {
    // Numbers of 1e6 are rounded to 1e-7 of the deviation.
    CHECK(std::abs(standardised.col(c).mean()) < (c == 1 ? 1e-6 : 1e-14));
    CHECK(standardised.col(c).squaredNorm() / 50 == doctest::Approx(1).epsilon(1e-6));
  }
  CHECK(scale.factors()(2) == 1);
  CHECK(standardised.col(2).isZero(0));
  CHECK((scale.restored(standardised) - targets).cwiseAbs().maxCoeff() < 1e-9);
  CHECK_FALSE(scale.is_identity());
  CHECK(TargetScale::centre(targets).factors() == Vector<double>::Ones(3));
  CHECK(TargetScale::identity(3).standardised(targets) == targets);
}

TEST_CASE("target scale: numbers near the ends of double") {
  Matrix<double> targets(2, 2);
  targets << 1e300, 3e-320, -1e300, 1e-320;
  const Matrix<double> standardised = TargetScale::fit(targets).standardised(targets);
  CHECK(standardised.col(0) == Vector<double>{{1, -1}});
  CHECK(standardised.allFinite());
}

TEST_CASE("target scale: errors") {
  CHECK_THROWS_AS((void)TargetScale::fit(Matrix<double>(0, 1)), ArgumentError);
  Matrix<double> bad = random_matrix(3, 1, 1);
  bad(1, 0) = std::nan("");
  CHECK_THROWS_AS((void)TargetScale::fit(bad), ArgumentError);
  CHECK_THROWS_AS((void)TargetScale(Vector<double>{{0}}, Vector<double>{{0}}), ArgumentError);
  CHECK_THROWS_AS((void)TargetScale(Vector<double>{{0}}, Vector<double>{{1, 1}}), ArgumentError);
  CHECK_THROWS_AS((void)TargetScale::identity(2).standardised(random_matrix(3, 1, 1)), ArgumentError);
}
