#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// A fixed orthogonal matrix Q over the positions of an input. Both factors of a product Z^T Z' may be multiplied by
/// it, since (Q Z)^T (Q Z') = Z^T Z'.
///
/// Attention makes sums of many nearly equal numbers of one sign. Each addition in float then rounds in the same
/// direction, so that the errors of all entries agree and do not average out: 1e-6 of the whole. The sums of the
/// rotated factors consist of one number for each group of positions, which holds the mean, and of others with any
/// sign and size, whose errors do average out.
namespace widelimit {

/// M = Q M for M [rows, columns] of rows that belong to positions; computed in double and rounded once.
/// 2 rows columns (32 + rows / 32) operations. In double the sums need no rotation, and M stays as it is.
void rotate_rows(float* matrix, Index rows, Index columns);
inline void rotate_rows(double*, Index, Index) {}

/// M = M Q^T for M [rows, columns] whose columns belong to positions.
void rotate_columns(float* matrix, Index rows, Index columns);
inline void rotate_columns(double*, Index, Index) {}

}  // namespace widelimit
