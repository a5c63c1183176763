#pragma once

#include <algorithm>

#include "widelimit/network/row_stage.hpp"

/// What row stages that are linear in the covariances have in common on their backward pass.
namespace widelimit {

/// For stages whose result does not depend on the variances of the two inputs.
template <typename Scalar>
void clear_variance_adjoints(const numerics::AdjointRow<Scalar>& row) {
  std::fill_n(row.left_adjoint, row.size, Scalar{0});
  std::fill_n(row.right_adjoint, row.size, Scalar{0});
}

/// The adjoints as a row that the stage itself can be applied to. A stage that multiplies entries by numbers is its
/// own transpose, so that its backward pass multiplies the adjoints by the same numbers.
template <typename Scalar>
numerics::DualRow<Scalar> adjoints_as_row(const numerics::AdjointRow<Scalar>& row) {
  return {row.nngp_adjoint, row.ntk_adjoint, row.left, row.right, row.size};
}

/// A row stage that is linear in the covariances. A stage writes self_adjoint_row(), for an input with itself, and
/// adjoint_row() of a pair follows.
template <typename Stage>
class LinearStageOf : public RowStageOf<Stage> {
 public:
  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    static_cast<const Stage&>(*this).self_adjoint_row(row);
    clear_variance_adjoints(row);
  }
};

}  // namespace widelimit
