#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

#include "network/layer_model.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::layers {

/// An activation as a row stage: K' = E[phi phi], T' = T E[phi' phi'] entry by entry
/// (docs/theory/kernel-recursion.md, section 2.2). What is particular to an activation is in numerics/.
class ActivationStage final : public RowStage, public numerics::formula::Readable {
 public:
  explicit ActivationStage(numerics::ActivationPtr activation) : activation_{std::move(activation)} {}

  [[nodiscard]] const numerics::ActivationPtr& activation() const { return activation_; }

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::gaussian,
            .leaves = StageRules::Leaves::not_gaussian,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return activation_->auxiliary_count(); }
  void prepare(const float* variance, std::size_t positions, float* const* auxiliary) const override {
    activation_->prepare(variance, auxiliary, positions);
  }
  void prepare(const double* variance, std::size_t positions, double* const* auxiliary) const override {
    activation_->prepare(variance, auxiliary, positions);
  }
  bool clears_gaps() const override { return activation_->clears_gaps(); }
  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::formula_of(*activation_);
  }
  Multiples multiples() const override {
    // A homogeneous function keeps the factor between multiples, so they stay perfectly correlated. Any other
    // function keeps only equal inputs equal.
    return activation_->homogeneous() ? Multiples::kept : Multiples::equal;
  }
  void apply(const numerics::DualRow<float>& row) const override { activation_->apply(row); }
  void apply(const numerics::DualRow<double>& row) const override { activation_->apply(row); }
  void apply_to_multiples(const numerics::DualRow<float>& row) const override {
    activation_->apply_to_multiples(row);
  }
  void apply_to_multiples(const numerics::DualRow<double>& row) const override {
    activation_->apply_to_multiples(row);
  }

  bool has_adjoint() const override { return true; }
  void apply_adjoint(const numerics::AdjointRow<float>& row) const override {
    activation_->apply_adjoint(row);
  }
  void apply_adjoint(const numerics::AdjointRow<double>& row) const override {
    activation_->apply_adjoint(row);
  }
  void apply_self_adjoint(const numerics::AdjointRow<float>& row) const override { self_adjoint_row(row); }
  void apply_self_adjoint(const numerics::AdjointRow<double>& row) const override { self_adjoint_row(row); }

 private:
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) {
      // With p = q = c there is one number to differentiate by: p-bar = K'-bar v'(p) + T'-bar T dg(p, p, p)/dp
      // (docs/theory/derivatives.md, section 1).
      const numerics::SelfSlopes self = activation_->self_slopes(static_cast<double>(row.nngp[i]));
      double adjoint = static_cast<double>(row.nngp_adjoint[i]) * self.slope.value;
      if (row.ntk_adjoint != nullptr) {
        const auto ntk = static_cast<double>(row.ntk_adjoint[i]);
        adjoint += ntk * static_cast<double>(row.ntk[i]) * self.slope.derivative;
        row.ntk_adjoint[i] = static_cast<Scalar>(ntk * self.dual.derivative);
      }
      // At a variance of 0 a slope may be infinite; there the input's own zeros multiply it, so it is no error.
      if (!std::isfinite(adjoint) && row.nngp[i] > 0)
        throw NumericalError(
            fmt::format("the derivatives of the dual nonlinearity are not finite at the variance {:g}: "
                        "expected functions that are "
                        "finite there",
                        row.nngp[i]));
      row.nngp_adjoint[i] = static_cast<Scalar>(adjoint);
    }
  }

  numerics::ActivationPtr activation_;
};

/// A nonlinearity of the library or of a user. The kinds differ only in their name and fields.
class ActivationLayer : public LayerModel, public numerics::formula::Readable {
 public:
  /// Throws ArgumentError for a null pointer, naming the kind.
  ActivationLayer(const std::string& kind, numerics::ActivationPtr activation);

  [[nodiscard]] LoweredState lower(Lowering& lowering, const LoweredState& input) const override;
  [[nodiscard]] std::shared_ptr<const finite::FiniteCounterpart> finite_counterpart() const override;
  [[nodiscard]] const numerics::ActivationPtr& activation() const { return activation_; }
  [[nodiscard]] numerics::formula::RowFormulaPointer formula() const override {
    const auto* readable = dynamic_cast<const numerics::formula::Readable*>(activation_.get());
    return readable == nullptr ? nullptr : readable->dual_formula();
  }
  [[nodiscard]] std::optional<numerics::formula::Symbol> written_value(
      const numerics::formula::Symbol& x) const override {
    const auto* readable = dynamic_cast<const numerics::formula::Readable*>(activation_.get());
    return readable == nullptr ? std::nullopt : readable->written_value(x);
  }

 private:
  numerics::ActivationPtr activation_;
};

}  // namespace widelimit::layers
