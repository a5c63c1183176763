#pragma once

#include <algorithm>

#include "widelimit/network/row_stage.hpp"

/// What row stages that are linear in the covariances have in common on their backward pass.
namespace widelimit {

/// Nothing of the result depends on the variances.
template <typename Scalar>
void clear_variance_adjoints(const numerics::AdjointRow<Scalar>& row) {
  std::fill_n(row.left_adjoint, row.size, Scalar{0});
  std::fill_n(row.right_adjoint, row.size, Scalar{0});
}

/// The adjoints as a row that the stage itself can be applied to: a stage that multiplies entries goes back by
/// multiplying their adjoints.
template <typename Scalar>
numerics::DualRow<Scalar> adjoints_as_row(const numerics::AdjointRow<Scalar>& row) {
  return {row.nngp_adjoint, row.ntk_adjoint, row.left, row.right, row.size};
}

/// A row stage that is linear in the covariances: its self_adjoint_row is its adjoint_row too.
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
