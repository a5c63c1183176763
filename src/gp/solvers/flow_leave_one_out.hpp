#pragma once

#include <algorithm>
#include <span>

#include "gp/solvers/linear_algebra.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// ConvergedFlow::leave_one_out() with amplitude 1 where no matrix is held, from solve(b) = (T + lambda I)^-1 b for b
/// [n, columns]: those columns of the inverse are computed, `block` at a time, and the NNGP multiplied with each block.
template <typename Solve>
LeaveOneOut solved_leave_one_out(const KernelOperator& nngp, const Matrix<double>& weights, double lambda,
                                 std::span<const Index> inputs, Index block, const Solve& solve) {
  const auto chosen = static_cast<Index>(inputs.size());
  LeaveOneOut others{weights(inputs, Eigen::all), Vector<double>(chosen)};
  for (Index first = 0; first < chosen; first += block) {
    const Index count = std::min(block, chosen - first);
    const auto places = inputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const Matrix<double> inverse = solve(unit_columns(weights.rows(), places));
    Vector<double> g(count);
    for (Index j = 0; j < count; ++j) g(j) = inverse(places[static_cast<std::size_t>(j)], j);
    const Vector<double> variances =
        nngp.multiply(inverse).cwiseProduct(inverse).colwise().sum().transpose().cwiseMax(0);
    others.residuals.middleRows(first, count).array().colwise() /= g.array();
    others.variances.segment(first, count) = variances.array() / g.array().square() + lambda;
  }
  return others;
}

}  // namespace widelimit::gp
