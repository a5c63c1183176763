#include "numerics/formula/gaussian.hpp"

#include <fmt/format.h>

#include "numerics/determinant.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics::formula {

void require_convergence(double rate, double p, double q, double c) {
  const double twice = 2 * rate, root = twice * root_determinant(p, q, c);
  // det(I - 2b Sigma) is positive as well where both eigenvalues are negative, so the diagonal is tested too.
  const bool diverges = twice * p >= 1 || twice * q >= 1;
  if (!(diverges || 1 - twice * (p + q) + root * root <= 0)) return;
  throw NumericalError(fmt::format(
      "gaussian: the expectation of exp({0} x^2) diverges for variances {1} and {2} with covariance {3}; "
      "variances must stay below 1/(4 rate) = {4}: use a negative rate or smaller weight variances",
      rate, p, q, c, 1 / (4 * rate)));
}

}  // namespace widelimit::numerics::formula
