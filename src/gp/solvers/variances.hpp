#pragma once

#include <algorithm>
#include <string_view>

#include "widelimit/matrix.hpp"

/// What the marginal variances of both kinds of posterior share.
namespace widelimit::gp {

/// Calls body(first, count) for consecutive blocks of test inputs: enough rows for full-speed products, few
/// enough that a block's workspace stays small beside the training Gram matrix.
template <typename Body>
void for_each_row_block(Eigen::Index rows, Body body) {
  constexpr Eigen::Index block = 512;
  for (Eigen::Index first = 0; first < rows; first += block) body(first, std::min(block, rows - first));
}

/// Negative variances within rounding (see Regression::variance) become 0; throws NumericalError at the first
/// one that is further below.
Vector<double> without_rounding_below_zero(Vector<double> variances, const Vector<double>& prior_variances,
                                           std::string_view where);

}  // namespace widelimit::gp
