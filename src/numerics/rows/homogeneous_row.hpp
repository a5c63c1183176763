#pragma once

#include <cstddef>

#include "numerics/formula/homogeneous.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Vectorised dual of positively homogeneous activations. Auxiliary arrays: 0 the variance p, 1 its inverse
/// root (-1 for p = 0, which counts as uncorrelated; entries with zeros in its place become 0). Errors, relative to
/// sqrt(pq) and 1: below 3e-7 (float) and 1e-15 (double) for every correlation, +-1 included; bitwise equal p, q and c
/// give the angle 0 exactly.
template <typename Scalar>
struct HomogeneousRows {
  void (*prepare)(const Scalar* variance, Scalar* const* auxiliary, std::size_t size);
  void (*apply)(const formula::HomogeneousDual& dual, const DualRow<Scalar>& row);
  /// The backward pass, with the slopes of theory/derivatives.md, section 2. Entries within 32 rounding errors of
  /// correlation 1 or -1, and those without a variance, have no slope of the derivative.
  void (*apply_adjoint)(const formula::HomogeneousDual& dual, const AdjointRow<Scalar>& row);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const HomogeneousRows<Scalar>& homogeneous_rows();

}  // namespace widelimit::numerics
