#pragma once

#include <span>
#include <string>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::gp {

/// Which rows have equal inputs. A function has one value at equal inputs, whatever it is, so that a fit solves for the
/// distinct ones, with the means of their targets and the sums of their weights; and rows of equal inputs are left out
/// together, as each would give away the others.
struct DistinctInputs {
  std::vector<Index> of_row;  ///< [n]: the distinct input of each row, numbered as they first appear.
  std::vector<Index> rows;    ///< [distinct]: the first row of each.
  /// [distinct]: inputs of one group are left out together; empty: each by itself.
  std::vector<Index> groups = {};

  [[nodiscard]] Index size() const { return static_cast<Index>(rows.size()); }
  /// Rows whose input an earlier row has.
  [[nodiscard]] Index repeats() const { return static_cast<Index>(of_row.size() - rows.size()); }
  /// "124 of 300 rows repeat others: equal rows are left out together"; empty if none do.
  [[nodiscard]] std::string text() const;
};

/// The distinct inputs of a batch: two are equal if they have the same sizes, numbers (0 is -0), masks and graphs;
/// numbers that a mask leaves out do not count.
///
/// groups  a number for each row, or none: rows of one group are left out together, and with them all rows of equal
///         inputs and of their groups
/// Errors  ArgumentError for groups of another count.
/// Cost    one pass over the numbers.
template <typename Scalar>
[[nodiscard]] DistinctInputs distinct_inputs(const Inputs<Scalar>& x, std::span<const Index> groups = {});

/// Those of two batches together, of which the second has no groups but those of equal rows. Errors: those of both, and
/// ArgumentError for batches that do not fit each other. Memory: a copy of both.
template <typename Scalar>
[[nodiscard]] DistinctInputs joined_inputs(const Inputs<Scalar>& first, const Inputs<Scalar>& second,
                                           std::vector<Index> groups);

/// Copies of these inputs of a batch, in double or in its precision, in their order, with their masks and graphs.
template <typename To, typename Scalar>
[[nodiscard]] Inputs<To> inputs_of_rows(const Inputs<Scalar>& x, const std::vector<Index>& rows);

}  // namespace widelimit::gp
