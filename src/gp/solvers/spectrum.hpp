#pragma once

#include <functional>

#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// What bounds a symmetric matrix K and its errors.
struct Spectrum {
  /// Ritz value: no eigenvalue's lower bound, and close to the smallest one where smallest_error is small.
  double smallest;
  double smallest_error;  ///< An eigenvalue lies within this of `smallest`.
  double largest;         ///< The largest eigenvalue.
  double frobenius_norm;  ///< Root of the sum of squares of all entries, to some percent.
  Index size;

  /// What K + lambda I may be taken to stand on: a positive eigenvalue as far as it is known.
  [[nodiscard]] double smallest_known() const;
};

/// Columns of random signs [n, at most 32], the same ones for every matrix of a size.
[[nodiscard]] Matrix<double> spectrum_probes(Index n);

/// By Lanczos iterations with a block of probes, which solvers that hold K in other forms share, so that they judge it
/// alike: of Q^T K Q from Q^T spectrum_probes() come the same numbers up to rounding. At most 12 calls of multiply(x
/// [n, at most 32]) = K x; exact up to rounding for n <= 384.
///
/// Source  Golub & Van Loan, Matrix Computations, 4th edition, section 10.3.6; the norm is Hutchinson's estimate, of
///         what the largest Ritz vectors leave.
[[nodiscard]] Spectrum spectrum_of(const Matrix<double>& probes,
                                   const std::function<Matrix<double>(const Matrix<double>& x)>& multiply);
[[nodiscard]] Spectrum spectrum_of(const KernelOperator& gram);

}  // namespace widelimit::gp
