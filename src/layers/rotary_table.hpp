#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::layers {

/// rho(r) = mean_i cos(r theta_i) for |r| <= reach (docs/theory/attention.md, section 3.5).
class RotaryTable {
 public:
  RotaryTable(const RotaryPositions& rotary, Index reach) {
    for (Index r = 0; r <= reach; ++r) {
      double sum = 0;
      for (const double frequency : rotary.frequencies) sum += std::cos(static_cast<double>(r) * frequency);
      values_.push_back(sum / static_cast<double>(rotary.frequencies.size()));
    }
  }

  [[nodiscard]] double operator()(Index r) const { return values_[static_cast<std::size_t>(std::abs(r))]; }

 private:
  std::vector<double> values_;
};

/// rho as a sum of products, rho(r - s) = sum_k w_k(r) w_k(s), with two waves for each frequency, cosine and sine. A
/// covariance of logits that has rho as a factor is then a sum of covariances without it, each of which can be
/// sampled. Without rotary positions there is one wave, w = 1.
class RotaryWaves {
 public:
  explicit RotaryWaves(const AttentionOptions& options) {
    if (options.sequence.rotary) frequencies_ = options.sequence.rotary->frequencies;
  }

  [[nodiscard]] std::size_t count() const { return std::max<std::size_t>(1, 2 * frequencies_.size()); }

  /// The matrix [d, d] with entry (a, c) multiplied by w_k(c - a).
  [[nodiscard]] Matrix<double> turned(std::size_t k, Matrix<double> matrix) const {
    if (frequencies_.empty()) return matrix;
    const double frequency = frequencies_[k / 2];
    const double scale = 1 / std::sqrt(static_cast<double>(frequencies_.size()));
    for (Index a = 0; a < matrix.rows(); ++a)
      for (Index c = 0; c < matrix.cols(); ++c) {
        const double angle = static_cast<double>(c - a) * frequency;
        matrix(a, c) *= scale * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
      }
    return matrix;
  }

 private:
  std::vector<double> frequencies_;
};

}  // namespace widelimit::layers
