#pragma once

#include <functional>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// All of n inputs, 0 .. n - 1.
[[nodiscard]] std::vector<Index> all_inputs(Index n);

/// All of n inputs, or of more than `most` so many evenly spaced ones.
[[nodiscard]] std::vector<Index> evenly_spaced_inputs(Index n, Index most);

/// Inputs that represent all n where the result for each takes n^2 operations or more: all of them or, of more
/// than 1,000, 1,000 evenly spaced ones. A mean over them differs by 3 % of the standard deviation over the inputs.
[[nodiscard]] std::vector<Index> representative_inputs(Index n);

/// Inputs in sets, one after the other: those of one set are left out together, and each is predicted from all inputs
/// outside of its set.
struct LeftOutSets {
  std::vector<Index> inputs;
  std::vector<Index> ends = {};  ///< Where each set ends in `inputs`; empty: each input is a set by itself.
};

/// The sets of `groups`, a number for each of n inputs, or each input by itself where that is empty. Of more than 1,000
/// inputs evenly spread groups are taken that have 1,000 inputs on average, or representative_inputs(). ArgumentError
/// for groups of another count, and where all inputs are of one group, so that there are no others.
[[nodiscard]] LeftOutSets representative_sets(Index n, const std::vector<Index>& groups);
/// The same of all inputs.
[[nodiscard]] LeftOutSets all_sets(Index n, const std::vector<Index>& groups);

/// Predictions of training targets from all others, in closed form: those of all n inputs, or of chosen ones.
struct LeaveOneOut {
  Matrix<double> residuals;  ///< [n, outputs]: target minus its prediction.
  Vector<double> variances;  ///< [n], of the observation left out: noise included.

  /// -log of the densities of the targets left out, summed over the outputs and averaged over the inputs: the negative
  /// of the log pseudo-likelihood / n (Rasmussen & Williams 2006, equation 5.11). NumericalError if a variance is 0.
  [[nodiscard]] double negative_log_predictive_density() const;

  /// Mean over inputs and outputs of squared residuals.
  [[nodiscard]] double mean_squared_error() const;

  /// The factor on the variances that makes the residuals most likely: mean over inputs and outputs of squared residual
  /// over variance. NumericalError, preceded by `where`, if variances are 0.
  [[nodiscard]] double most_likely_scale(const char* where) const;

  /// The same factor for each output on its own, [outputs].
  [[nodiscard]] Vector<double> most_likely_scales(const char* where) const;
};

/// A score of predictions with the amplitude 1, where lower is better: `amplitude` is that of their outputs, of which
/// the first is `first_output`, and `lambda` the variance of the noise with the amplitude 1.
using LeftOutScore =
    std::function<double(const LeaveOneOut& unit, double amplitude, double lambda, Index first_output)>;

/// What is left out where something is chosen by it, and how it is scored.
struct LeftOut {
  std::vector<Index> groups = {};  ///< See representative_sets().
  LeftOutScore score = {};         ///< Absent: LeaveOneOut::negative_log_predictive_density().
};

}  // namespace widelimit::gp
