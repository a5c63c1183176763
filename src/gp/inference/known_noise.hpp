#pragma once

#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Known noise variances, or weights, of rows; both may be empty.
struct RowNumbers {
  const Vector<double>& noise_variances;
  const Vector<double>& weights;
};

/// Weights of the rows, or the mean noise variance over that of each; empty if all rows have the weight 1. With D of
/// their roots, the Gram matrix D K D and the targets D y have equal noise.
[[nodiscard]] Vector<double> row_weights(const RowNumbers& numbers);

/// ArgumentError, preceded by `where`, for another count than `rows`, numbers that are not positive, and both at once.
void require_row_numbers(const RowNumbers& numbers, Index rows, bool classes, const char* where);

}  // namespace widelimit::gp
