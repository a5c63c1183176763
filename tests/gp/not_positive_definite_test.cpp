#include "widelimit/gp/not_positive_definite.hpp"

#include <doctest/doctest.h>

#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;

TEST_CASE("not positive definite: carries what it was told, as an error of the library") {
  const NotPositiveDefinite by_factor("message", -0.5, 0.75, 3), by_eigenvalue("other", -1, std::nullopt);
  CHECK(by_factor.smallest_eigenvalue() == -0.5);
  CHECK(by_factor.sufficient_regulariser() == 0.75);
  CHECK(by_factor.leading_minor() == 3);
  CHECK_FALSE(by_eigenvalue.sufficient_regulariser().has_value());
  CHECK_FALSE(by_eigenvalue.leading_minor().has_value());
  const NumericalError& base = by_factor;
  CHECK(std::string(base.what()) == "message");
}

TEST_CASE("not positive definite: the regulariser that a fit names is enough, and half of it is not") {
  Matrix<double> gram = 2 * Matrix<double>::Identity(6, 6);
  gram(1, 4) = gram(4, 1) = 3;  // eigenvalues 5 and -1; the leading minor of order 5 is the first below 0
  const Matrix<double> targets = Matrix<double>::Ones(6, 1);
  try {
    (void)Regression::fit(gram, targets, RelativeRegulariser(0.1));
    FAIL("no error");
  } catch (const NotPositiveDefinite& error) {
    CHECK(error.smallest_eigenvalue() == doctest::Approx(-1).epsilon(1e-12));
    CHECK(error.leading_minor() == 5);
    REQUIRE(error.sufficient_regulariser().has_value());
    const double enough = *error.sufficient_regulariser();
    CHECK_NOTHROW((void)Regression::fit(gram, targets, RelativeRegulariser(enough)));
    CHECK_THROWS_AS((void)Regression::fit(gram, targets, RelativeRegulariser(enough / 2)),
                    NotPositiveDefinite);
  }
}
