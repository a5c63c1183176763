#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// A dual of which the variances enter with a shift s > 0, R^2 = (s + p)(s + q) - c^2: erf and exp(-x^2). GELU has s =
/// 1 and no other number.
struct TiltedDual {
  double shift;   ///< s
  double weight;  ///< erf: value = weight arcsin(c / sqrt((s + p)(s + q))) + offset, derivative = weight / R.
  double offset = 0;  ///< exp(-x^2): value = weight / R, derivative = value c / R^2.
};

/// The vectorised dual of a function with such a dual. Auxiliary arrays: 0 the variance p, 1 the inverse root of s + p.
/// Errors, relative to the root mean squares: below 4e-7 (float) and 1e-15 (double) for every correlation, also +-1.
template <typename Scalar>
struct TiltedRows {
  void (*prepare)(double shift, const Scalar* variance, Scalar* const* auxiliary, std::size_t size);
  /// Whether no product of variances leaves the range: all are below 1e18 (float) or 1e150.
  bool (*cover)(const DualRow<Scalar>& row);
  void (*apply)(const TiltedDual& dual, const DualRow<Scalar>& row);
  /// The backward pass, for rows that cover() allows.
  void (*apply_adjoint)(const TiltedDual& dual, const AdjointRow<Scalar>& row);
};

/// Shifts for which the squares of cover() stay within the range.
constexpr double smallest_shift = 1e-12;
constexpr double largest_shift = 1e12;

/// The best implementation for this machine of the function that has such a formula (formula/smooth_formulas.hpp).
/// Scalar is float or double. tilted_rows.cpp has them by name.
template <typename Scalar, class Formula>
const TiltedRows<Scalar>& tilted_rows();

}  // namespace widelimit::numerics
