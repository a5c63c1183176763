#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Writes the adjoints of entry i in front of an activation whose dual has these slopes there.
template <typename Scalar>
void write_adjoint(const AdjointRow<Scalar>& row, std::size_t i, const DualSlopes& slopes) {
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

/// The total slopes on the diagonal p = q = c from the partial ones there.
inline SelfSlopes along_diagonal(const DualSlopes& slopes) {
  return {slopes.dual,
          {slopes.left.value + slopes.right.value + slopes.value_in_c,
           slopes.left.derivative + slopes.right.derivative + slopes.derivative_in_c}};
}

}  // namespace widelimit::numerics
