#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::specialization {

using Eigen::Index;

/// Distribution of the features theta (F) that mix the hidden spikes into the signal of a sequence.
///
/// All nu are variances (squared lengths), not amplitudes. Signs and permutations of features are the caller's.
///
/// Errors  every factory throws ArgumentError for negative or non-finite strengths, an empty support, points of unequal
///         length, and probabilities that are negative or do not sum to 1 within 1e-12.
/// Source  arXiv:2603.03993, section II.
class Prior {
 public:
  enum class Kind { discrete, gaussian };

  /// (sqrt(nu1), +-sqrt(nu2)), each sign with probability 1/2; F = 2.
  [[nodiscard]] static Prior flip2(double nu1, double nu2);
  /// sqrt(nu) e_f with f uniform in [0, features).
  [[nodiscard]] static Prior spikes(Index features, double nu);
  /// theta_f ~ N(0, variances[f]), independent.
  [[nodiscard]] static Prior gaussian(const Vector<double>& variances);
  /// theta = points.row(k) with probability probabilities[k].
  [[nodiscard]] static Prior discrete(const Matrix<double>& points, const Vector<double>& probabilities);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] Index features() const { return mean_.size(); }
  [[nodiscard]] const Vector<double>& mean() const { return mean_; }
  [[nodiscard]] const Matrix<double>& covariance() const { return covariance_; }
  /// Of the covariance, ascending (F); rounding can leave one slightly below 0.
  [[nodiscard]] Vector<double> covariance_eigenvalues() const;

  /// Discrete priors: the support (points x F) and its probabilities; empty for Gaussian ones.
  [[nodiscard]] const Matrix<double>& points() const { return points_; }
  [[nodiscard]] const Vector<double>& probabilities() const { return probabilities_; }
  /// Gaussian priors: nu_f; empty for discrete ones.
  [[nodiscard]] const Vector<double>& variances() const { return variances_; }

  /// Whether the distribution is unchanged when feature f changes sign. ArgumentError for f out of range.
  [[nodiscard]] bool symmetric_in(Index feature) const;

  /// One draw; theta is resized to F.
  void sample(numerics::RandomStream& random, Vector<double>& theta) const;

  /// phi = ln E exp(theta . chi_star - |theta|^2 / 2): the log odds that a token with projections chi_star (F) on the
  /// spikes is the one that carries the signal. `spike_gram` is p = k* k*^T (F x F) at finite D, where |theta|^2
  /// becomes theta^T p theta ("exact norm"); without it the limit p = I is used ("limit norm").
  [[nodiscard]] double token_score(const Vector<double>& chi_star) const;
  [[nodiscard]] double token_score(const Vector<double>& chi_star, const Matrix<double>& spike_gram) const;

 private:
  Prior() = default;
  [[nodiscard]] double log_odds(const Vector<double>& chi_star, const Matrix<double>* spike_gram) const;

  Kind kind_ = Kind::discrete;
  Matrix<double> points_;
  Vector<double> probabilities_;
  Vector<double> cumulative_;
  Vector<double> half_norms_;
  Vector<double> variances_;
  Vector<double> mean_;
  Matrix<double> covariance_;
};

/// F variances equally spaced from first to last (F = 1: first). ArgumentError for F < 1 or negative ends.
[[nodiscard]] Vector<double> linear_variances(Index features, double first, double last);

}  // namespace widelimit::specialization
