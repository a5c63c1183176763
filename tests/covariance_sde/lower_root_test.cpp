#include "widelimit/covariance_sde/lower_root.hpp"

#include <doctest/doctest.h>

#include "covariance_sde/example_covariances.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/symmetric_root.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

TEST_CASE("lower_root: it and the symmetric root reproduce the matrix, singular or not") {
  for (const Matrix<double>& v :
       {examples::c(), examples::e(), examples::f(), Matrix<double>(Matrix<double>::Constant(3, 3, 2)),
        Matrix<double>(Matrix<double>::Zero(2, 2))}) {
    const Matrix<double> root = numerics::symmetric_root(v), lower = lower_root(v);
    CHECK((root * root - v).cwiseAbs().maxCoeff() < 1e-14);
    CHECK((root - root.transpose()).cwiseAbs().maxCoeff() < 1e-15);
    CHECK((lower * lower.transpose() - v).cwiseAbs().maxCoeff() < 1e-15);
    CHECK(lower.isLowerTriangular());
  }
  CHECK_THROWS_WITH_AS((void)lower_root(Matrix<double>{{1, 0}, {0, -1}}),
                       "lower_root: a covariance must be positive semidefinite, got eigenvalues from -1 to 1",
                       ArgumentError);
}
