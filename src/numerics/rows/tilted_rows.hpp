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

/// Vectorised duals of erf, GELU and exp(-x^2). Auxiliary arrays: 0 the variance p, 1 the inverse root of s + p.
/// Errors, relative to the root mean squares: below 4e-7 (float) and
/// 1e-15 (double) for every correlation, +-1 included.
template <typename Scalar>
struct TiltedRows {
  void (*prepare)(double shift, const Scalar* variance, Scalar* const* auxiliary, std::size_t size);
  /// Whether no product of variances leaves the range: all are below 1e18 (float) or 1e150.
  bool (*cover)(const DualRow<Scalar>& row);
  void (*erf)(const TiltedDual& dual, const DualRow<Scalar>& row);
  void (*gelu)(const DualRow<Scalar>& row);
  void (*gaussian)(const TiltedDual& dual, const DualRow<Scalar>& row);

  /// The backward pass through each, for rows that cover() allows.
  void (*erf_adjoint)(const TiltedDual& dual, const AdjointRow<Scalar>& row);
  void (*gelu_adjoint)(const AdjointRow<Scalar>& row);
  void (*gaussian_adjoint)(const TiltedDual& dual, const AdjointRow<Scalar>& row);
};

/// Shifts for which the squares of cover() stay within the range.
constexpr double smallest_shift = 1e-12;
constexpr double largest_shift = 1e12;

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const TiltedRows<Scalar>& tilted_rows();

}  // namespace widelimit::numerics
