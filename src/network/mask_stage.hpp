#pragma once

#include <cmath>

#include "network/linear_adjoints.hpp"
#include "network/mask_rule.hpp"
#include "numerics/formula/stages.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit {

/// K'_ab = u_a K_ab u'_b and T' likewise, with u_a = (d / n)^exponent where a position counts and 0 where it is
/// masked; n of d positions count. The array u comes from an input's mask, not from its variances, so the engine
/// calls fill() in place of prepare(). The class is no ScalingStage, because pulled back readouts call prepare(),
/// which knows no masks.
class MaskStage final : public LinearStageOf<MaskStage>, public numerics::formula::Readable {
 public:
  MaskStage(MaskRulePointer rule, double exponent) : rule_{std::move(rule)}, exponent_{exponent} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 1; }
  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(numerics::formula::ScaleFormula{});
  }
  bool clears_gaps() const override { return true; }

  /// u of an input with this mask.
  template <typename Scalar>
  void fill(const PositionMask& input, Scalar* array) const {
    const PositionMask mask = rule_->behind(input);
    const auto weight = static_cast<Scalar>(
        std::pow(static_cast<double>(mask.counts.size()) / static_cast<double>(mask.count()), exponent_));
    for (std::size_t i = 0; i < mask.counts.size(); ++i) array[i] = mask.counts[i] != 0 ? weight : Scalar{0};
  }

  /// For callers without masks, such as checks of any network's stages: all positions count.
  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t positions, Scalar* const* auxiliary) const {
    for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = 1;
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(row);
  }

  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(adjoints_as_row(row));
  }

 private:
  MaskRulePointer rule_;
  double exponent_;
};

}  // namespace widelimit
