#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
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

/// rho as a sum of products, rho(r - s) = sum_k w_k(r) w_k(s), with two waves for each different frequency, cosine and
/// sine; the sine of the frequency 0 is none. A covariance of logits that has rho as a factor is then a sum of
/// covariances without it, each of which can be sampled. Without rotary positions there is one wave, w = 1.
class RotaryWaves {
 public:
  /// For inputs of at most so many positions.
  RotaryWaves(const AttentionOptions& options, Index positions) : reach_{positions - 1} {
    if (!options.sequence.rotary) return;
    const std::vector<double>& frequencies = options.sequence.rotary->frequencies;
    std::vector<double> different;
    std::vector<double> counts;
    for (const double frequency : frequencies) {
      const auto known = std::find(different.begin(), different.end(), std::abs(frequency));
      if (known != different.end()) {
        ++counts[static_cast<std::size_t>(known - different.begin())];
      } else {
        different.push_back(std::abs(frequency));
        counts.push_back(1);
      }
    }
    const double scale = 1 / std::sqrt(static_cast<double>(frequencies.size()));
    for (std::size_t k = 0; k < different.size(); ++k) {
      add_wave(scale * std::sqrt(counts[k]), [&](double r) { return std::cos(r * different[k]); });
      if (different[k] != 0)
        add_wave(scale * std::sqrt(counts[k]), [&](double r) { return std::sin(r * different[k]); });
    }
  }

  [[nodiscard]] std::size_t count() const { return std::max<std::size_t>(1, waves_.size()); }

  /// The matrix [d, d] with entry (a, c) multiplied by w_k(c - a).
  [[nodiscard]] Matrix<double> turned(std::size_t k, Matrix<double> matrix) const {
    if (waves_.empty()) return matrix;
    for (Index a = 0; a < matrix.rows(); ++a)
      matrix.row(a).array() *= waves_[k].segment(reach_ - a, matrix.cols()).transpose().array();
    return matrix;
  }

 private:
  template <typename Function>
  void add_wave(double scale, const Function& function) {
    Vector<double> wave(2 * reach_ + 1);
    for (Index r = -reach_; r <= reach_; ++r) wave(reach_ + r) = scale * function(static_cast<double>(r));
    waves_.push_back(std::move(wave));
  }

  Index reach_;
  std::vector<Vector<double>> waves_;  ///< From distance -reach to reach.
};

}  // namespace widelimit::layers
