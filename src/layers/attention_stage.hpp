#pragma once

#include <fmt/format.h>

#include "layers/attention_positions.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// What all attention stages share: law, shape, and the interpolation with positional encodings.
template <typename Derived>
class AttentionStage : public PairStageOf<Derived> {
 public:
  explicit AttentionStage(AttentionOptions options) : options_{std::move(options)} {}

  StageLaw law() const override {
    return {.accepts = StageLaw::Accepts::anything, .leaves = StageLaw::Leaves::gaussian, .fresh_weights = true};
  }

  Shape output_shape(const Shape& input) const override {
    if (input.empty())
      throw ArgumentError("expected inputs with positions, got vectors; put attention before flatten or global pooling");
    if (options_.positions) check_positions_fit(*options_.positions, input);
    return input;
  }

 protected:
  [[nodiscard]] const AttentionOptions& options() const { return options_; }

  [[nodiscard]] bool encodes_values() const {
    return options_.positions && options_.positions->values == ValueEncodings::present;
  }

  /// target = w_in covariance + w_pe R, or covariance itself without encodings. NaNs of entries that nobody asked for
  /// stay NaN.
  template <typename Scalar, typename Covariance>
  void write_encoded(const Covariance& covariance, const Shape& left, const Shape& right,
                     Eigen::Map<Matrix<Scalar>>& target) const {
    if (!options_.positions) {
      target = covariance;
      return;
    }
    const auto& positions = *options_.positions;
    target = static_cast<Scalar>(positions.input_weight) * covariance +
             (positions.position_weight * position_covariance(positions, left, right)).template cast<Scalar>();
  }

 private:
  AttentionOptions options_;
};

}  // namespace widelimit::layers
