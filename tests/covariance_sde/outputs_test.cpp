#include "widelimit/covariance_sde/outputs.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

TEST_CASE("outputs: their covariance is that of the tokens, and paths draw apart") {
  Matrix<double> v(2, 2);
  v << 2, 0.6, 0.6, 1;
  const Matrix<double> outputs = sampled_outputs(v, 100'000, 3, 0);
  const Matrix<double> found = outputs.transpose() * outputs / 1e5;
  CHECK((found - v).cwiseAbs().maxCoeff() < 0.03);
  CHECK(sampled_outputs(v, 2, 3, 0) == outputs.topRows(2));
  CHECK(sampled_outputs(v, 2, 3, 1) != outputs.topRows(2));
  CHECK(sampled_outputs(v, 2, 4, 0) != outputs.topRows(2));
}

TEST_CASE("outputs: what is refused") {
  const Matrix<double> v = Matrix<double>::Identity(2, 2);
  CHECK_THROWS_AS(sampled_outputs(v, 0, 1, 0), ArgumentError);
  CHECK_THROWS_AS(sampled_outputs(v, 1, 1, -1), ArgumentError);
  CHECK_THROWS_AS(sampled_outputs(-v, 1, 1, 0), ArgumentError);
}

}  // namespace widelimit::covariance_sde
