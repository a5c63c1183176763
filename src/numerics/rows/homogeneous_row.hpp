#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// A positively homogeneous activation as its dual sees it: with theta the angle between u and v from the
/// nearer of correlation 1 and -1, derivative = aligned - weight theta or opposed + weight theta.
struct HomogeneousDual {
  double aligned;  ///< E[phi'(u)^2]
  double opposed;  ///< E[phi'(u) phi'(-u)]
  double weight;   ///< (positive slope - negative slope)^2 / (2 pi)
};

/// Vectorised dual of positively homogeneous activations. Auxiliary arrays: 0 the variance p, 1 its inverse
/// root (-1 for p = 0, which counts as uncorrelated; entries with zeros in its place become 0). Errors, relative to
/// sqrt(pq) and 1: below 3e-7 (float) and 1e-15 (double) for every correlation, +-1 included; bitwise equal p, q and c
/// give the angle 0 exactly.
template <typename Scalar>
struct HomogeneousRows {
  void (*prepare)(const Scalar* variance, Scalar* const* auxiliary, std::size_t size);
  void (*apply)(const HomogeneousDual& dual, const DualRow<Scalar>& row);
  /// The backward pass, with the slopes of theory/derivatives.md, section 2. Entries within 32 rounding errors of
  /// correlation 1 or -1, and those without a variance, have no slope of the derivative.
  void (*apply_adjoint)(const HomogeneousDual& dual, const AdjointRow<Scalar>& row);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const HomogeneousRows<Scalar>& homogeneous_rows();

}  // namespace widelimit::numerics
