#include "widelimit/numerics/symmetric_root.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using numerics::symmetric_root;

TEST_CASE("symmetric_root: squares to the matrix, of full rank or not") {
  numerics::RandomStream random(1);
  for (const int rank : {1, 3, 5}) {
    Matrix<double> factor(5, rank);
    for (double& entry : factor.reshaped()) entry = random.normal();
    const Matrix<double> matrix = factor * factor.transpose(), root = symmetric_root(matrix);
    CHECK((root * root - matrix).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((root - root.transpose()).cwiseAbs().maxCoeff() < 1e-14);
  }
  CHECK(symmetric_root(Matrix<double>::Zero(3, 3)).isZero(0));
}

TEST_CASE("symmetric_root: rounding below zero is cut, a negative matrix is not") {
  Matrix<double> matrix = Matrix<double>::Zero(2, 2);
  matrix(0, 0) = 4;
  matrix(1, 1) = -1e-12;
  Matrix<double> expected = Matrix<double>::Zero(2, 2);
  expected(0, 0) = 2;
  CHECK((symmetric_root(matrix) - expected).cwiseAbs().maxCoeff() < 1e-15);
  matrix(1, 1) = -1e-7;
  CHECK_THROWS_WITH_AS(
      (void)symmetric_root(matrix),
      "symmetric_root: the matrix is not positive semidefinite, its eigenvalues go from -1e-07 to 4",
      NumericalError);
  CHECK((symmetric_root(matrix, 1e-6) - expected).cwiseAbs().maxCoeff() < 1e-15);
  CHECK_THROWS_WITH_AS((void)symmetric_root(Matrix<double>::Zero(2, 3)),
                       "symmetric_root: the matrix must be square, got 2 x 3", ArgumentError);
  matrix(1, 0) = NAN;
  CHECK_THROWS_AS((void)symmetric_root(matrix), ArgumentError);
}
