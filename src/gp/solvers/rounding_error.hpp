#pragma once

#include "gp/solvers/spectrum.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/selection.hpp"

namespace widelimit::gp {

/// How far K + lambda I must stand above the error of K: predictions from directions that are nothing but
/// error then have a tenth of the targets' size, and their squares no weight.
inline constexpr double signal_to_noise = 10;

/// gram_error() as far as it is rounding: without negative eigenvalues, which may be a fault of the kernel.
[[nodiscard]] double rounding_error(const Spectrum& spectrum, double entry_epsilon);

/// The size, in spectral norm, of the errors of a symmetric matrix that is positive semidefinite without
/// them. The largest of what is known: a negative eigenvalue is an error of that size; eigenvalues have
/// errors of n eps times the largest one; and entries that are rounded to numbers of machine epsilon `entry_epsilon`
/// err like independent random numbers of at most half of that, which as a matrix have norm 2 sqrt(n) times their
/// standard deviation: epsilon |K|_F / sqrt(n) (Wigner's semicircle).
[[nodiscard]] double gram_error(const Spectrum& spectrum, double entry_epsilon);

/// What all solvers judge regularisers by. ArgumentError where the mean diagonal is not positive.
[[nodiscard]] GramAccuracy gram_accuracy(const Spectrum& spectrum, double mean_diagonal,
                                         double entry_epsilon);

}  // namespace widelimit::gp
