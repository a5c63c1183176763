#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "widelimit/error.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Writes the adjoints of entry i before an activation whose dual has these slopes there.
///
/// Always inlined, so that nobody computes the dual's value, which it does not read.
template <typename Scalar>
[[gnu::always_inline]] inline void write_adjoint(const AdjointRow<Scalar>& row, std::size_t i,
                                                 const DualSlopes& slopes) {
  const auto nngp = static_cast<double>(row.nngp_adjoint[i]);
  double product = 0;  // T'-bar T
  if (row.ntk_adjoint != nullptr) {
    const auto ntk = static_cast<double>(row.ntk_adjoint[i]);
    product = ntk * static_cast<double>(row.ntk[i]);
    row.ntk_adjoint[i] = static_cast<Scalar>(ntk * slopes.dual.derivative);
  }
  const auto through = [&](double value_slope, double derivative_slope) {
    return static_cast<Scalar>(nngp * value_slope + product * derivative_slope);
  };
  row.nngp_adjoint[i] = through(slopes.value_in_c, slopes.derivative_in_c);
  row.left_adjoint[i] = through(slopes.left.value, slopes.left.derivative);
  row.right_adjoint[i] = through(slopes.right.value, slopes.right.derivative);
}

/// Writes the adjoints of entry i from slopes that may be anything, such as those of a user's functions. Throws
/// NumericalError if an adjoint is not finite although L depends on the entry. Gaps between the rows of a plane have
/// variance 0, and pass.
template <typename Scalar>
void write_checked_adjoint(const AdjointRow<Scalar>& row, std::size_t i, const DualSlopes& slopes) {
  const bool matters = row.nngp_adjoint[i] != 0 || (row.ntk_adjoint != nullptr && row.ntk_adjoint[i] != 0);
  write_adjoint(row, i, slopes);
  // The sum is finite only if all adjoints are, so one test covers the four of them.
  const auto sum = static_cast<double>(row.nngp_adjoint[i]) + static_cast<double>(row.left_adjoint[i]) +
                   static_cast<double>(row.right_adjoint[i]) +
                   (row.ntk_adjoint == nullptr ? 0.0 : static_cast<double>(row.ntk_adjoint[i]));
  if (std::isfinite(sum)) return;
  if (!matters) {
    // Zero times an infinite slope would be NaN, and would spread from here.
    row.nngp_adjoint[i] = row.left_adjoint[i] = row.right_adjoint[i] = 0;
    if (row.ntk_adjoint != nullptr) row.ntk_adjoint[i] = 0;
    return;
  }
  if (!(row.left_variance[i] > 0 && row.right_variance[i] > 0)) return;
  throw NumericalError(
      fmt::format("the derivatives of the dual nonlinearity are not finite at the variances {:g} and {:g} "
                  "and the covariance {:g}: "
                  "expected functions that are finite wherever the covariance is possible",
                  row.left_variance[i], row.right_variance[i], row.nngp[i]));
}

/// The total slopes on the diagonal p = q = c from the partial ones there.
inline SelfSlopes along_diagonal(const DualSlopes& slopes) {
  return {slopes.dual,
          {slopes.left.value + slopes.right.value + slopes.value_in_c,
           slopes.left.derivative + slopes.right.derivative + slopes.derivative_in_c}};
}

}  // namespace widelimit::numerics
