#include "gp/solvers/variances.hpp"

#include <fmt/format.h>

#include "widelimit/error.hpp"

namespace widelimit::gp {

Vector<double> without_rounding_below_zero(Vector<double> variances, const Vector<double>& prior_variances,
                                           std::string_view where) {
  // Matrices that belong together leave less than this; more is a fault of the input.
  constexpr double largest_rounding = 1e-3;
  for (Eigen::Index i = 0; i < variances.size(); ++i) {
    if (!(variances(i) >= -largest_rounding * prior_variances(i)))
      throw NumericalError(
          fmt::format("{}: the variance of test input {} comes out as {:.6g}, with prior variance {:.6g}; "
                      "check that the cross Gram "
                      "matrices and the test variances belong to the training kernel, and compute them in "
                      "double or regularise "
                      "more",
                      where, i, variances(i), prior_variances(i)));
    variances(i) = std::max(variances(i), 0.0);
  }
  return variances;
}

}  // namespace widelimit::gp
