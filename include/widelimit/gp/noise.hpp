#pragma once

#include <variant>

namespace widelimit::gp {

/// Regulariser eps relative to the kernel: the variance added to the diagonal of an n x n Gram matrix K is
/// eps * trace(K) / n, so that eps means the same for kernels of every scale. Positive and finite
/// (ArgumentError).
class RelativeRegulariser {
 public:
  /// eps > 0.
  explicit RelativeRegulariser(double value);
  [[nodiscard]] double value() const noexcept { return value_; }

 private:
  double value_;
};

/// Variance of the observation noise in squared units of the targets, added to the diagonal as it is.
/// Positive and finite (ArgumentError).
class AbsoluteNoise {
 public:
  /// lambda > 0.
  explicit AbsoluteNoise(double variance);
  [[nodiscard]] double variance() const noexcept { return variance_; }

 private:
  double variance_;
};

/// The noise added to the diagonal of a Gram matrix, in one of its two forms.
using Noise = std::variant<RelativeRegulariser, AbsoluteNoise>;

/// The variance lambda that `noise` adds to the diagonal of a Gram matrix whose mean diagonal entry is
/// `mean_diagonal`. Throws ArgumentError for a relative regulariser and a mean diagonal that is not
/// positive.
[[nodiscard]] double noise_variance(const Noise& noise, double mean_diagonal);

}  // namespace widelimit::gp
