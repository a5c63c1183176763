#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// Why a path ended.
enum class PathEnd {
  horizon,    ///< Never left the bounds.
  above,      ///< Largest eigenvalue above the upper bound.
  below,      ///< Smallest eigenvalue below the lower bound.
  not_finite  ///< Overflow.
};

/// A path is stopped at its first state with an eigenvalue of V outside [lower, upper].
struct StopBounds {
  double lower = 0;  ///< 0 disables the lower side.
  double upper = 1e4;
};

/// The fate of one path.
struct PathOutcome {
  PathEnd end = PathEnd::horizon;
  double stop_time = 0;         ///< Time of the state at which the path stopped, the horizon if it did not.
  double last_inside_time = 0;  ///< Time of the last state inside the bounds.
  std::int64_t cone_exits = 0;  ///< Steps that left the positive semidefinite cone and were clipped.
};

/// The quantity whose covariances an ensemble holds.
enum class CovarianceOf {
  tokens,         ///< X.
  branch_inputs,  ///< The inputs of the next layer's attention: LayerNorm(X) under Pre-LN, otherwise X.
};

/// Covariances of many independent paths at a list of times. A stopped path keeps its last state inside
/// the bounds. Memory: paths * times * m (m + 1) / 2 doubles.
class CovarianceEnsemble {
 public:
  /// All covariances NaN. ArgumentError for tokens < 1, paths < 1, no times, and more than the memory holds.
  CovarianceEnsemble(Index tokens, Index paths, std::vector<double> times,
                     CovarianceOf kept = CovarianceOf::tokens);

  [[nodiscard]] Index tokens() const { return tokens_; }
  [[nodiscard]] Index paths() const { return paths_; }
  [[nodiscard]] const std::vector<double>& times() const { return times_; }
  [[nodiscard]] CovarianceOf kept() const { return kept_; }

  /// m x m covariance of one path at times()[time]. Here and below, ArgumentError for a time or path that is missing.
  [[nodiscard]] Matrix<double> covariance(Index time, Index path) const;
  /// The upper triangle of `v` is kept.
  void set_covariance(Index time, Index path, const Eigen::Ref<const Eigen::MatrixXd>& v);

  [[nodiscard]] const PathOutcome& outcome(Index path) const {
    return outcomes_[static_cast<std::size_t>(path)];
  }
  PathOutcome& outcome(Index path) { return outcomes_[static_cast<std::size_t>(path)]; }

  /// V^{ab} of every path.
  [[nodiscard]] std::vector<double> entries(Index time, Index a, Index b) const;
  /// rho^{ab} of every path; NaN where a variance is 0.
  [[nodiscard]] std::vector<double> correlations(Index time, Index a, Index b) const;
  /// Mean of rho^{ab} over the pairs a < b of every path, and the same of |rho^{ab}| and |V^{ab}|. At least
  /// two tokens.
  [[nodiscard]] std::vector<double> mean_correlations(Index time) const;
  [[nodiscard]] std::vector<double> mean_absolute_correlations(Index time) const;
  [[nodiscard]] std::vector<double> mean_absolute_covariances(Index time) const;
  /// The largest eigenvalue of V of every path.
  [[nodiscard]] std::vector<double> largest_eigenvalues(Index time) const;

  /// Whether a path had not stopped by times()[time].
  [[nodiscard]] bool running(Index time, Index path) const;
  /// Indices of the paths that had not, and of those that had.
  [[nodiscard]] std::vector<Index> running_paths(Index time) const;
  [[nodiscard]] std::vector<Index> stopped_paths(Index time) const;

  /// Number of paths that ended for the given reason, and of clipped steps over all paths.
  [[nodiscard]] Index count(PathEnd end) const;
  [[nodiscard]] std::int64_t cone_exits() const;

 private:
  [[nodiscard]] std::size_t offset(Index time, Index path) const;

  Index tokens_, paths_;
  std::vector<double> times_;
  CovarianceOf kept_;
  std::vector<double> values_;  // [time][path][pair]
  std::vector<PathOutcome> outcomes_;
};

}  // namespace widelimit::covariance_sde
