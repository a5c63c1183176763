#pragma once

#include <algorithm>

#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// ConvergedFlow::leave_one_out() with amplitude 1 where no matrix is held, from solve(b) = (T + lambda I)^-1 b for b [n,
/// columns]: the inverse is computed `block` columns at a time, and the NNGP multiplied with each block.
template <typename Solve>
LeaveOneOut solved_leave_one_out(const KernelOperator& nngp, const Matrix<double>& weights, double lambda,
                                 Index block, const Solve& solve) {
  LeaveOneOut others{weights, Vector<double>(weights.rows())};
  for (Index first = 0; first < weights.rows(); first += block) {
    const Index count = std::min(block, weights.rows() - first);
    Matrix<double> unit = Matrix<double>::Zero(weights.rows(), count);
    unit.middleRows(first, count).setIdentity();
    const Matrix<double> inverse = solve(unit);
    const Vector<double> g = inverse.middleRows(first, count).diagonal();
    const Vector<double> variances =
        nngp.multiply(inverse).cwiseProduct(inverse).colwise().sum().transpose().cwiseMax(0);
    others.residuals.middleRows(first, count) =
        g.cwiseInverse().asDiagonal() * weights.middleRows(first, count);
    others.variances.segment(first, count) = variances.array() / g.array().square() + lambda;
  }
  return others;
}

}  // namespace widelimit::gp
