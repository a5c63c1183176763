#pragma once

#include "widelimit/specialization/loss.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// Nodes of the tensor trapezoid rule: `points` on [-span, span] for every Gaussian variable.
struct GridShape {
  Index points = 61;
  double span = 8;
};

/// Population loss and gradients by quadrature instead of samples: a check for small models. The Gaussian
/// variables are chi* (F L of them) and, unless r = 0, xi (H L); a Gaussian prior is absorbed into chi*. For
/// r = 0 the gradient of r is 0.
///
/// Accuracy  about 1e-9 for spacings up to 0.3.
/// Errors    ArgumentError for more than 1e9 nodes and as sampled_loss.
/// Cost      points^(number of variables) samples, times the points of a discrete prior.
[[nodiscard]] SampledLoss loss_by_quadrature(HeadActivation activation, const HeadParameters& parameters,
                                             const Prior& prior, Index tokens, const GridShape& grid = {},
                                             const RunControl& run = {});

/// Bayes risk by quadrature over chi*; errors and cost as above.
[[nodiscard]] double bayes_risk_by_quadrature(const Prior& prior, Index tokens, const GridShape& grid = {},
                                              const RunControl& run = {});

}  // namespace widelimit::specialization
