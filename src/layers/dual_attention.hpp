#pragma once

#include "layers/attention_stage.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/rotary_table.hpp"
#include "network/dual_attention_stage.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {

/// 1/sqrt(width) attention whose weights have a dual activation, in the form that devices read.
template <typename Derived>
class DualAttention : public AttentionStage<Derived>, public DualAttentionStage {
 public:
  explicit DualAttention(const AttentionOptions& options)
      : AttentionStage<Derived>(options), zeta_{activation_of(options.weights.nonlinearity())} {}

  Form form() const override {
    const AttentionOptions& options = this->options();
    const auto slopes = zeta_->homogeneous();
    const double sum = slopes ? slopes->negative + slopes->positive : 0;
    return {.factor = options.output_value_variance,
            .bias = options.bias_variance,
            .query_key_square = this->squared_query_key_std(),
            .query_bias = options.query_bias_variance,
            .key_bias = options.key_bias_variance,
            .input_weight = this->input_weight(),
            .encodes_values = this->encodes_values(),
            .has_encodings = options.positions.has_value(),
            .is_identity = slopes && slopes->negative == 1 && slopes->positive == 1,
            .is_homogeneous = slopes.has_value(),
            .mirror = sum * sum / 2,
            .sees_everything = sees_everything(options),
            .turns = options.sequence.rotary.has_value()};
  }

  const numerics::ActivationPtr& weights() const override { return zeta_; }
  numerics::formula::RowFormulaPointer dual() const override { return numerics::formula::formula_of(*zeta_); }

  std::shared_ptr<const Matrix<double>> encodings(const Shape& left, const Shape& right) const override {
    return this->options().positions ? this->template weighted_positions<double>(left, right) : nullptr;
  }

  bool sees_position(Index a, Index c) const override { return sees(this->options(), a, c); }

  std::vector<double> turns(Index reach) const override {
    const RotaryTable rho(*this->options().sequence.rotary, reach);
    std::vector<double> numbers;
    for (Index r = 0; r <= reach; ++r) numbers.push_back(rho(r));
    return numbers;
  }

 protected:
  [[nodiscard]] const numerics::Activation& zeta() const { return *zeta_; }

 private:
  numerics::ActivationPtr zeta_;
};

}  // namespace widelimit::layers
