#pragma once

#include <Eigen/Cholesky>
#include <span>

#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// Columns of an inverse G for some inputs.
struct InverseColumns {
  Matrix<double> columns;  ///< [n, inputs], in the basis of the NNGP, if there is one.
  Matrix<double> own;      ///< [inputs, inputs]: the rows of the same inputs.
};

/// Predictions of the inputs of sets from all outside of their set, with the amplitude 1. With G = (T + lambda I)^-1
/// the residuals of a set g are G_gg^-1 (G y)_g. The covariance of its observations is G_gg^-1 where T is the prior's
/// kernel, and with the NNGP K of trained networks G_gg^-1 (G K G)_gg G_gg^-1 + lambda I, of which the diagonal is
/// taken: each input counts by its marginal density, since those of new ones are scored one by one too.
///
/// weights     G y of `sets.inputs`, [inputs, outputs]
/// nngp        null for a regression
/// columns_of  (places, first): the columns of G for these inputs, which stand in `sets.inputs` from `first` on
template <typename ColumnsOf>
LeaveOneOut left_out_by_sets(const LeftOutSets& sets, const Matrix<double>& weights,
                             const Matrix<double>* nngp, double lambda, const ColumnsOf& columns_of) {
  constexpr Index enough = 256;  // Columns at once, more only where a single set has more.
  LeaveOneOut others{weights, Vector<double>(weights.rows())};
  const std::span<const Index> inputs(sets.inputs);
  for (std::size_t next = 0, first_set = 0; first_set < sets.ends.size(); first_set = next) {
    const Index first = first_set == 0 ? 0 : sets.ends[first_set - 1];
    while (next < sets.ends.size() && (next == first_set || sets.ends[next] - first <= enough)) ++next;
    const Index count = sets.ends[next - 1] - first;
    const InverseColumns g =
        columns_of(inputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), first);
    Matrix<double> moved;
    if (nngp != nullptr) moved = multiply(*nngp, Transpose::no, g.columns, Transpose::no);
    for (std::size_t s = first_set; s < next; ++s) {
      const Index begin = s == 0 ? 0 : sets.ends[s - 1], size = sets.ends[s] - begin, at = begin - first;
      const Matrix<double> block =
          g.own.block(at, at, size, size).llt().solve(Matrix<double>::Identity(size, size));
      others.residuals.middleRows(begin, size) = block * weights.middleRows(begin, size);
      if (nngp == nullptr) {
        others.variances.segment(begin, size) = block.diagonal();
        continue;
      }
      const Matrix<double> inner = g.columns.middleCols(at, size).transpose() * moved.middleCols(at, size);
      // Rounding may take a variance that is nearly 0 below it.
      others.variances.segment(begin, size) =
          (block * inner).cwiseProduct(block).rowwise().sum().cwiseMax(0).array() + lambda;
    }
  }
  return others;
}

}  // namespace widelimit::gp
