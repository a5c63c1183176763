#pragma once

#include <map>
#include <string>

#include "network/layer_model.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::layers {

/// An activation as an offset-local stage.
class ActivationStage final : public RowStage {
 public:
  explicit ActivationStage(numerics::ActivationPtr activation) : activation_{std::move(activation)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::gaussian,
            .leaves = StageRules::Leaves::not_gaussian,
            .fresh_weights = false};
  }
  std::size_t auxiliary_count() const override { return activation_->auxiliary_count(); }
  void prepare(const float* variance, std::size_t positions, float* const* auxiliary) const override {
    activation_->prepare(variance, auxiliary, positions);
  }
  void prepare(const double* variance, std::size_t positions, double* const* auxiliary) const override {
    activation_->prepare(variance, auxiliary, positions);
  }
  bool clears_gaps() const override { return activation_->clears_gaps(); }
  Multiples multiples() const override {
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

 private:
  numerics::ActivationPtr activation_;
};

/// A nonlinearity, of the library or of a user's own.
class ActivationLayer : public LayerModel {
 public:
  /// ArgumentError for a null pointer, naming the kind.
  ActivationLayer(const std::string& kind, numerics::ActivationPtr activation);

  [[nodiscard]] State lower(Lowering& lowering, const State& input) const override;
  [[nodiscard]] std::shared_ptr<const finite::FiniteCounterpart> finite_counterpart() const override;
  [[nodiscard]] const numerics::ActivationPtr& activation() const { return activation_; }

 private:
  numerics::ActivationPtr activation_;
};

}  // namespace widelimit::layers
