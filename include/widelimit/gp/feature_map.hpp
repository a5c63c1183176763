#pragma once

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// A linear map of the channels of every position, before a network sees them: nothing, a factor for each channel, or a
/// matrix. It says which channels matter (learn_inputs()).
class FeatureMap {
 public:
  /// Leaves inputs unchanged.
  FeatureMap() = default;

  /// `factors`: [1, channels], one for each channel, or [channels, channels], by which every row of channels is
  /// multiplied; empty for none. ArgumentError for other sizes and numbers that are not finite.
  explicit FeatureMap(Matrix<double> factors);

  [[nodiscard]] bool is_identity() const { return factors_.size() == 0; }
  /// Whether there is a factor for each channel, and no matrix.
  [[nodiscard]] bool is_diagonal() const { return factors_.rows() == 1; }
  /// As the constructor takes them.
  [[nodiscard]] const Matrix<double>& factors() const { return factors_; }

  /// The inputs mapped, with their masks and graphs; sums run in double. ArgumentError for another number of channels.
  template <typename Scalar>
  [[nodiscard]] Inputs<Scalar> apply(const Inputs<Scalar>& x) const;

 private:
  Matrix<double> factors_;
};

}  // namespace widelimit::gp
