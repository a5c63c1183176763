#include "widelimit/gp/double_matrix.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <utility>

#include "gp/problem.hpp"

using namespace widelimit;
using widelimit::gp::DoubleMatrix;
using widelimit::gp_test::random_matrix;

TEST_CASE("double matrix: one that is moved in and out stays where it lies, an lvalue is copied") {
  Matrix<double> original = random_matrix(5, 4, 1);
  const Matrix<double> expected = original;
  const double* place = original.data();
  const DoubleMatrix copied = original;
  CHECK(copied.matrix() == expected);
  CHECK(copied.matrix().data() != place);
  CHECK(original == expected);
  DoubleMatrix moved = std::move(original);
  CHECK(moved.matrix().data() == place);
  const Matrix<double> out = std::move(moved).take();
  CHECK(out.data() == place);
  CHECK(out == expected);
}

TEST_CASE("double matrix: float and expressions are converted, and what rounded them is remembered") {
  constexpr double of_double = std::numeric_limits<double>::epsilon();
  constexpr auto of_float = static_cast<double>(std::numeric_limits<float>::epsilon());
  const Matrix<float> single = random_matrix(3, 6, 2).cast<float>();
  const DoubleMatrix converted = single;
  CHECK(converted.matrix() == single.cast<double>());
  CHECK(converted.epsilon() == of_float);
  const DoubleMatrix block = single.leftCols(2).transpose();
  CHECK(block.matrix() == single.leftCols(2).transpose().cast<double>());
  CHECK(block.epsilon() == of_float);
  const Matrix<double> wide = random_matrix(3, 3, 3);
  CHECK(DoubleMatrix(wide).epsilon() == of_double);
  CHECK(DoubleMatrix(2 * wide).epsilon() == of_double);
  CHECK(DoubleMatrix(2 * wide).matrix() == 2 * wide);
}

TEST_CASE("double matrix: an epsilon that is given counts, but never below that of double") {
  const Matrix<double> matrix = random_matrix(2, 2, 4);
  CHECK(DoubleMatrix(matrix, 1e-3).epsilon() == 1e-3);
  CHECK(DoubleMatrix(matrix, 1e-30).epsilon() == std::numeric_limits<double>::epsilon());
  CHECK(DoubleMatrix(matrix, 1e-3).matrix() == matrix);
}
