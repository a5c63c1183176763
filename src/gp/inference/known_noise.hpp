#pragma once

#include <vector>

#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Known noise variances, or weights, of rows; both may be empty.
struct RowNumbers {
  const Vector<double>& noise_variances;
  const Vector<double>& weights;
};

/// Roots of the weights, or of the mean noise variance over each; empty if all rows are alike. With D of them, the Gram
/// matrix D K D and the targets D y have equal noise.
[[nodiscard]] Vector<double> row_factors(const RowNumbers& numbers);

/// ArgumentError, preceded by `where`, for another count than `rows`, numbers that are not positive, and both at once.
void require_row_numbers(const RowNumbers& numbers, Index rows, bool classes, const char* where);

/// What was left out of weighted rows, whose `factors` are given, as single observations: those of the noise lambda,
/// whatever the weight of the row.
[[nodiscard]] LeaveOneOut single_observations(LeaveOneOut others, const Vector<double>& factors,
                                              double lambda);

}  // namespace widelimit::gp
