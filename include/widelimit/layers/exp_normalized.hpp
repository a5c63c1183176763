#pragma once

#include "widelimit/network/layer.hpp"

namespace widelimit::layers {

/// The normalised Gaussian kernel: K' = sqrt(pq) exp(gamma (rho + shift)) for variances p, q and correlation rho, T' =
/// gamma exp(gamma (rho + shift)) T. It is the limit of r exp(sqrt(gamma) x / r + gamma (shift - 1) / 2), r^2 the mean
/// square of the channels of a position. Needs Gaussian channels. ArgumentError for gamma that is negative and for
/// arguments that are not finite.
///
/// Source  Shankar et al., "Neural kernels without tangents", ICML 2020, arXiv:2003.02237, section 3.
[[nodiscard]] Layer exp_normalized(double gamma = 1, double shift = -1);

}  // namespace widelimit::layers
