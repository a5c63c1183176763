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

/// rho as a sum of products, rho(r - s) = sum_k w_k(r) w_k(s) for |r|, |s| < positions. A covariance of logits that
/// has rho as a factor is then a sum of covariances without it, each of which can be sampled. Without rotary positions
/// there is one wave, w = 1.
///
/// The waves are the columns of a Cholesky factor of rho over the distances 0, 1, -1, 2, -2, ...: no more than there
/// are distances, and no more than two for each frequency, of which slow ones share theirs. Those of fewer positions
/// are the first ones of more positions, to the last bit.
class RotaryWaves {
 public:
  RotaryWaves(const AttentionOptions& options, Index positions) {
    if (!options.sequence.rotary) return;
    reach_ = positions - 1;
    const RotaryTable rho(*options.sequence.rotary, 2 * reach_);
    std::vector<std::vector<double>> rows;
    for (Index i = 0; i < 2 * positions - 1; ++i) add_row(rho, i, rows);
    waves_ = Matrix<double>::Zero(static_cast<Index>(first_.size()), 2 * positions - 1);
    for (Index i = 0; i < 2 * positions - 1; ++i)
      for (std::size_t k = 0; k < rows[static_cast<std::size_t>(i)].size(); ++k)
        waves_(static_cast<Index>(k), reach_ + distance(i)) = rows[static_cast<std::size_t>(i)][k];
  }

  [[nodiscard]] std::size_t count() const { return std::max<std::size_t>(1, first_.size()); }

  /// How many of the first waves are not 0 everywhere between so many positions.
  [[nodiscard]] std::size_t count_within(Index positions) const {
    if (first_.empty()) return 1;
    const auto end = std::lower_bound(first_.begin(), first_.end(), 2 * positions - 1);
    return static_cast<std::size_t>(end - first_.begin());
  }

  /// The matrix [d, d] with entry (a, c) multiplied by w_k(c - a).
  [[nodiscard]] Matrix<double> turned(std::size_t k, Matrix<double> matrix) const {
    if (first_.empty()) return matrix;
    for (Index a = 0; a < matrix.rows(); ++a)
      matrix.row(a).array() *= waves_.row(static_cast<Index>(k)).segment(reach_ - a, matrix.cols()).array();
    return matrix;
  }

 private:
  /// The i-th distance: 0, 1, -1, 2, -2, ...
  static Index distance(Index i) { return i % 2 == 0 ? -(i / 2) : (i + 1) / 2; }

  /// A row of the factor, from those before it alone. What is left of the diagonal after them opens a column, unless it
  /// is rounding.
  void add_row(const RotaryTable& rho, Index i, std::vector<std::vector<double>>& rows) {
    constexpr double rounding = 1e-12;
    std::vector<double> row;
    double left = rho(0);
    for (const Index pivot : first_) {
      const std::vector<double>& above = rows[static_cast<std::size_t>(pivot)];
      double value = rho(distance(i) - distance(pivot));
      for (std::size_t k = 0; k < row.size(); ++k) value -= row[k] * above[k];
      row.push_back(value / above[row.size()]);
      left -= row.back() * row.back();
    }
    if (left > rounding) {
      row.push_back(std::sqrt(left));
      first_.push_back(i);
    }
    rows.push_back(std::move(row));
  }

  Index reach_ = 0;
  std::vector<Index> first_;  ///< At which distance each wave begins.
  Matrix<double> waves_;      ///< [waves, distances], from -reach to reach.
};

}  // namespace widelimit::layers
