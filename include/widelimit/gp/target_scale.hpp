#pragma once

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// An offset and a positive factor for each output of a regression: y = offset + factor * standardised y. A prior of
/// mean 0 and of the scale of a network knows nothing of the units of targets; standardised ones have none.
class TargetScale {
 public:
  /// Targets as they are: offsets 0, factors 1.
  [[nodiscard]] static TargetScale identity(Index outputs);

  /// Mean and standard deviation (over n, not n - 1) of each column of targets [n, outputs], n >= 1. A column of equal
  /// numbers has the factor 1. ArgumentError for no rows or columns and for numbers that are not finite.
  [[nodiscard]] static TargetScale fit(const Matrix<double>& targets);

  /// The means alone, with factors 1: for noise and amplitudes in the units of the targets.
  [[nodiscard]] static TargetScale centre(const Matrix<double>& targets);

  /// ArgumentError unless both have a number for each output, offsets are finite and factors positive and finite.
  TargetScale(Vector<double> offsets, Vector<double> factors);

  /// The same scale, which restores no number outside of these, [2, outputs]: the least above the greatest of each
  /// output. ArgumentError for other sizes and numbers that are no range.
  [[nodiscard]] TargetScale within(Matrix<double> range) const;

  /// Standardises targets [n, outputs].
  [[nodiscard]] Matrix<double> standardised(const Matrix<double>& targets) const;
  /// Converts means [n, outputs] back to the units of the targets.
  [[nodiscard]] Matrix<double> restored(const Matrix<double>& means) const;

  [[nodiscard]] Index outputs() const { return offsets_.size(); }
  [[nodiscard]] const Vector<double>& offsets() const { return offsets_; }
  [[nodiscard]] const Vector<double>& factors() const { return factors_; }
  /// See within(); empty where there is none.
  [[nodiscard]] const Matrix<double>& range() const { return range_; }
  [[nodiscard]] bool is_identity() const;

 private:
  Vector<double> offsets_;
  Vector<double> factors_;
  Matrix<double> range_ = {};
};

}  // namespace widelimit::gp
