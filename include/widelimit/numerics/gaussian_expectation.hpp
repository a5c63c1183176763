#pragma once

#include <functional>
#include <vector>

namespace widelimit::numerics {

/// A computed number with an estimate of its absolute error.
struct Expectation {
  double value;
  double error;
};

/// E[f(x)] for a centred Gaussian x, by adaptive Gauss-Kronrod integration over ten standard deviations, or as many
/// more (up to 52) as f needs, split at 0 and at the breakpoints (kinks and jumps of f).
///
/// Accuracy  1e-12 relative to E|f| for a function that is smooth between breakpoints; `error` is an upper estimate.
/// Edges     variance 0 gives f(0).
/// Errors    ArgumentError for a variance that is negative or not finite, for breakpoints that are not finite;
///           NumericalError where f is not finite within ten standard deviations, or grows so fast that more than 1e-14
///           of E|f| is left beyond 52.
/// Cost      some hundred calls of f.
[[nodiscard]] Expectation gaussian_expectation(const std::function<double(double)>& f, double variance,
                                               const std::vector<double>& breakpoints = {});

}  // namespace widelimit::numerics
