#pragma once

#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// All of n inputs, 0 .. n - 1.
[[nodiscard]] std::vector<Index> all_inputs(Index n);

/// Inputs that represent all n where the result for each takes n^2 operations or more: all of them or, of more
/// than 1,000, 1,000 evenly spaced ones. A mean over them differs by 3 % of the standard deviation over the inputs.
[[nodiscard]] std::vector<Index> representative_inputs(Index n);

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

}  // namespace widelimit::gp
