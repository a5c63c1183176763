// Maps of channels.
#include "widelimit/gp/feature_map.hpp"

#include <doctest/doctest.h>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

TEST_CASE("feature map: factors, matrices, sequences and masks") {
  const Matrix<double> x = random_matrix(5, 3, 1);
  const Matrix<double> factors = random_matrix(1, 3, 2), matrix = random_matrix(3, 3, 3);
  const Inputs<double> scaled = FeatureMap(factors).apply(Inputs<double>(x)),
                       mapped = FeatureMap(matrix).apply(Inputs<double>(x));
  const Matrix<double> product = x * matrix;
  for (Index i = 0; i < 5; ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      const auto column = static_cast<Index>(c);
      CHECK(scaled[i][c] == x(i, column) * factors(0, column));
      CHECK(mapped[i][c] == Approx(product(i, column)));
    }
  const std::vector<Matrix<double>> list{random_matrix(2, 3, 4), random_matrix(4, 3, 5)};
  const Inputs<double> sequences = FeatureMap(factors).apply(Inputs<double>(list));
  CHECK(sequences.is_ragged());
  CHECK(sequences[1][11] == list[1](3, 2) * factors(0, 2));
  CHECK_THROWS_WITH_AS(static_cast<void>(FeatureMap(factors).apply(Inputs<double>(random_matrix(2, 4, 6)))),
                       "FeatureMap: expected inputs of 3 channels, got 4", ArgumentError);
  CHECK_THROWS_AS(FeatureMap(random_matrix(2, 3, 7)), ArgumentError);
}
