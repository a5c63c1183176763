#include "covariance_sde/arguments.hpp"

#include "covariance_sde/guarded_cholesky.hpp"
#include "covariance_sde/path_bounds.hpp"
#include "numerics/gram_arguments.hpp"

namespace widelimit::covariance_sde {

void require_covariance(std::string_view where, const Matrix<double>& v) {
  const Eigen::Index m = v.rows();
  if (m == 0 || v.cols() != m)
    throw ArgumentError(
        fmt::format("{}: a covariance must be square with one row a token, got {} x {}", where, m, v.cols()));
  for (Eigen::Index a = 0; a < m; ++a)
    for (Eigen::Index b = 0; b < m; ++b)
      if (!std::isfinite(v(a, b)))
        throw ArgumentError(
            fmt::format("{}: a covariance must be finite, got {} at ({}, {})", where, v(a, b), a, b));
  numerics::require_semidefinite(where, "a covariance", v);
}

void require_variances(std::string_view where, const Matrix<double>& v) {
  for (Eigen::Index a = 0; a < v.rows(); ++a)
    if (!(v(a, a) > 0))
      throw ArgumentError(fmt::format(
          "{}: every token must have a variance above 0, got {} at ({}, {}): leave that token out", where,
          v(a, a), a, a));
}

void require_start(std::string_view where, const Matrix<double>& v0, const StopBounds& bounds) {
  require_variances(where, v0);
  Matrix<double> root(v0.rows(), v0.cols());
  if (!guarded_cholesky(v0, root))
    throw ArgumentError(fmt::format(
        "{}: V_0 must be positive semidefinite to rounding, got a pivot below -{:g} of its variance", where,
        exit_tolerance));
  if (end_of_path(v0, bounds))
    throw ArgumentError(
        fmt::format("{}: the eigenvalues of V_0 must lie within the stopping bounds {} and {}", where,
                    bounds.lower, bounds.upper));
}

std::optional<PathEnd> end_of_path(const Matrix<double>& v, const StopBounds& bounds) {
  return end_of_path<Matrix<double>>(v, bounds);
}

}  // namespace widelimit::covariance_sde
