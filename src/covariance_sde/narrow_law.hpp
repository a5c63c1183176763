#pragma once

#include <functional>

#include "widelimit/matrix.hpp"

/// Laws of one-dimensional diffusions while they are narrow against the scale of their drift: short times and strong
/// drifts, which a grid does not resolve.
namespace widelimit::covariance_sde {

/// dx = drift(x) dt + sqrt(variance) dB from start.
struct DriftedDiffusion {
  std::function<double(double)> drift;
  double variance = 1, start = 0;
  /// The length over which the drift changes by its own size.
  std::function<double(double)> scale;
};

/// x = centre + deviation xi with xi of the density phi(xi) sum_k coefficients[k] He_k(xi) / sqrt(k!).
struct NarrowLaw {
  double time = 0, centre = 0, deviation = 1;
  Vector<double> coefficients;

  [[nodiscard]] double cumulative(double x) const;
  [[nodiscard]] double density(double x) const;
};

/// The law at `time`, or at the last time before at which its deviation is below 0.06 of the scale and the last of 64
/// coefficients are below 1e-11.
///
/// Source   derived here (docs/theory/covariance-sde.md, section 7.2): the forward equation in the frame that moves and
///          widens with the law, where it begins as a standard normal one, in Hermite functions.
/// Accuracy 1e-9 absolute in every probability.
/// Cost     some 0.1 s.
[[nodiscard]] NarrowLaw narrow_law(const DriftedDiffusion& diffusion, double time);

}  // namespace widelimit::covariance_sde
