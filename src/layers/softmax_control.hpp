#pragma once

#include <algorithm>
#include <cmath>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// The logits of one input: G_ai and G_bj have the covariance qk^2 Q_ab M_ij, where Q is the covariance of the
/// queries and M that of the keys.
struct LogitCovariance {
  Vector<double> queries;  ///< [d], the diagonal of Q.
  Matrix<double> keys;     ///< [d, d], M.
};

/// A control variate for sampled softmax: its weights to second order in the logits,
///
///     s_i = (1 + g_i + (g_i^2 - mean_k g_k^2) / 2) / d,   g the logits of a row without their mean.
///
/// Products s V s'^T of such weights are polynomials of Gaussian numbers, whose expectation is exact
/// (docs/theory/attention.md, section 3.4). The less the logits of a row differ, the more closely they follow the
/// products of softmax.
class SoftmaxControl {
 public:
  /// `queries` and `keys` are the covariances between both inputs, [d, e]; `values` is V and `scale` is qk.
  SoftmaxControl(const LogitCovariance& left, const LogitCovariance& right, const Matrix<double>& queries,
                 const Matrix<double>& keys, const Matrix<double>& values, double scale)
      : scale_{scale}, queries_{queries} {
    const double square = scale * scale;
    const Vector<double> of_left = spread(left.keys), of_right = spread(right.keys);
    // The mean of a row's weights is (1 + factor * spread) / d: the squares of logits whose variance is above the
    // average raise their weights.
    left_factor_ = square / 2 * left.queries;
    right_factor_ = square / 2 * right.queries;
    largest_variance_ =
        std::max(largest(square * left.queries, left.keys), largest(square * right.queries, right.keys));
    count_ = static_cast<double>(values.size());
    const Matrix<double> covariance = without_means(keys);
    sum_ = values.sum();
    of_left_ = of_left.dot(values.rowwise().sum());
    of_right_ = of_right.dot(values.colwise().sum());
    of_both_ = of_left.dot(values * of_right);
    linear_ = square * values.cwiseProduct(covariance).sum();
    quadratic_ = square * square / 2 * values.cwiseProduct(without_means(covariance.cwiseAbs2())).sum();
  }

  /// False if logits differ by so much that the expansion has nothing to do with softmax.
  [[nodiscard]] bool is_useful() const {
    constexpr double most = 9;
    return largest_variance_ <= most;
  }

  /// The weights of all rows.
  [[nodiscard]] Matrix<double> weights(const Matrix<double>& logits) const {
    Matrix<double> weights = scale_ * logits;
    for (Index a = 0; a < weights.rows(); ++a) {
      auto row = weights.row(a).array();
      row -= row.mean();
      const double mean_square = row.square().mean();
      row = (1 - mean_square / 2 + row + row.square() / 2) / static_cast<double>(weights.cols());
    }
    return weights;
  }

  /// E[s V s'^T] at (a, b).
  [[nodiscard]] double expectation(Index a, Index b) const {
    const double left = left_factor_(a), right = right_factor_(b), query = queries_(a, b);
    return (sum_ + left * of_left_ + right * of_right_ + left * right * of_both_ + query * linear_ +
            query * query * quadratic_) /
           count_;
  }

 private:
  /// The matrix minus the means of its rows and columns.
  static Matrix<double> without_means(const Matrix<double>& matrix) {
    Matrix<double> centred = matrix.colwise() - matrix.rowwise().mean();
    centred.rowwise() -= centred.colwise().mean().eval();
    return centred;
  }
  /// How much more than the average the logit of each key varies, after the mean of its row is subtracted.
  static Vector<double> spread(const Matrix<double>& keys) {
    const Vector<double> variances = without_means(keys).diagonal();
    return variances.array() - variances.mean();
  }
  static double largest(const Vector<double>& queries, const Matrix<double>& keys) {
    return queries.maxCoeff() * without_means(keys).diagonal().maxCoeff();
  }

  double scale_;
  const Matrix<double>& queries_;
  Vector<double> left_factor_, right_factor_;
  double largest_variance_ = 0, count_ = 1;
  double sum_ = 0, of_left_ = 0, of_right_ = 0, of_both_ = 0, linear_ = 0, quadratic_ = 0;
};

}  // namespace widelimit::layers
