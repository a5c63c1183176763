#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::layers {

/// A Matern kernel of the channels before it: K' = k(s), with s = sqrt(2 smoothness (p + q - 2c)) / length for
/// variances p, q and the covariance c of two positions. After dense(), without biases, p + q - 2c is the mean over
/// channels of squared differences. The smoothness is 0.5: k = exp(-s), the Laplace kernel; 1.5: (1 + s) exp(-s); or
/// 2.5: (1 + s + s^2 / 3) exp(-s). K' is exactly 1 for an input with itself.
///
/// T' = 0, as of features that are not trained: after a readout without bias both kernels are k. Derivatives pass
/// through K'; that of the Laplace kernel is infinite at equal inputs, and counts as 0 there. Inputs whose squared
/// distance is below two rounding errors of p + q count as equal for it; k of inputs just beyond has an error of the
/// root of them, 5e-4 sqrt(p) / length in float. Needs Gaussian channels. ArgumentError for another smoothness, and a
/// length beyond 1e-9 to 1e9.
///
/// Source  Rasmussen & Williams 2006, equation 4.17.
[[nodiscard]] Layer matern(double smoothness = 1.5, double length = 1);

}  // namespace widelimit::layers
