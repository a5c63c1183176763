#include "widelimit/covariance_sde/lower_root.hpp"

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/guarded_cholesky.hpp"

namespace widelimit::covariance_sde {

Matrix<double> lower_root(const Matrix<double>& v) {
  require_covariance("lower_root", v);
  Matrix<double> l(v.rows(), v.cols());
  if (!guarded_cholesky(v, l))
    throw NumericalError(
        "lower_root: a pivot is negative beyond rounding; use numerics::symmetric_root for this matrix");
  return l;
}

}  // namespace widelimit::covariance_sde
