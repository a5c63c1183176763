#include "widelimit/gp/cross_gram.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::random_matrix;

TEST_CASE("cross Gram matrix: blocks and products of a matrix in memory are those of plain loops") {
  const Matrix<float> k = random_matrix(1100, 7, 1).cast<float>();
  const Matrix<double> x = random_matrix(7, 3, 2);
  const CrossGram cross = k;
  CHECK(cross.rows() == 1100);
  CHECK(cross.columns() == 7);
  CHECK((cross.block(1095, 5) - k.bottomRows(5).cast<double>()).isZero(0));
  const Matrix<double> product = cross.multiply(x);
  for (Index i = 0; i < 1100; ++i)
    for (Index j = 0; j < 3; ++j) {
      double sum = 0, scale = 0;
      for (Index l = 0; l < 7; ++l) {
        sum += static_cast<double>(k(i, l)) * x(l, j);
        scale += std::abs(static_cast<double>(k(i, l)) * x(l, j));
      }
      REQUIRE(std::abs(product(i, j) - sum) <= 1e-14 * scale);
    }
}

TEST_CASE("cross Gram matrix: a product asks for every row once, in order") {
  std::vector<std::pair<Index, Index>> asked;
  const CrossGram cross(1300, 2, [&](Index first, Index count) -> Matrix<double> {
    asked.emplace_back(first, count);
    return Matrix<double>::Constant(count, 2, 1);
  });
  CHECK((cross.multiply(Matrix<double>{{1.0}, {2.0}}).array() == 3).all());
  Index next = 0;
  for (const auto& [first, count] : asked) {
    CHECK(first == next);
    next = first + count;
  }
  CHECK(next == 1300);
  CHECK(asked.size() > 1);
}

TEST_CASE("cross Gram matrix: rows of another shape, NaN and infinity are named") {
  const CrossGram narrow(4, 3,
                         [](Index, Index count) -> Matrix<double> { return Matrix<double>::Zero(count, 2); });
  CHECK_THROWS_WITH_AS((void)narrow.block(1, 2),
                       "CrossGram: the rows that were asked for must be [2, 3], got [2, 2]", ArgumentError);
  const CrossGram shorter(4, 3, [](Index, Index) -> Matrix<double> { return Matrix<double>::Zero(1, 3); });
  CHECK_THROWS_WITH_AS((void)shorter.multiply(Matrix<double>::Zero(3, 1)),
                       "CrossGram: the rows that were asked for must be [4, 3], got [1, 3]", ArgumentError);
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    Matrix<double> k = Matrix<double>::Ones(4, 3);
    k(2, 1) = bad;
    const CrossGram cross = k;
    CHECK_NOTHROW((void)cross.block(0, 2));
    CHECK_THROWS_WITH_AS((void)cross.block(1, 3), doctest::Contains("(1, 1)"), ArgumentError);
  }
}
