#pragma once

#include <string>

#include "kernel/plan/geometry.hpp"
#include "widelimit/numerics/formula/symbol.hpp"

namespace widelimit {

/// Entries along a side of the square that a work-group computes.
[[nodiscard]] inline Index product_square(Index group_side) { return 4 * group_side; }

/// Mean products of all vectors of two sides, as an OpenCL kernel named `products`:
///
///     products(lefts, left_first, left_numbers, left_count,
///              rights, right_first, right_numbers, right_count, rows, columns, symmetric, values, multiples,
///              channels, leading, first, source, least)
///
/// for left vectors left_first + [0, rows) and right ones right_first + [0, columns) of `channels` numbers, of which
/// the first one begins at `first` and the next `leading` numbers further; `symmetric`: both sides are one batch.
/// Numbers are those of VectorSource, [number][count], where those of a source are the variance and its rounding error.
/// `values` are [source][row][column], and `multiples` [row][column], which tell which vectors of any source are
/// multiples of each other. As on the CPU (kernel/inputs/multiples.hpp), products of those that may be, with
/// correlations from `least` on, are taken again with errors of a rounding or two, so that equal vectors have exactly
/// their variance. `group_side`: a work-group is a square of so many items a side.
std::string product_source(numerics::formula::Precision precision, Index group_side);

}  // namespace widelimit
