#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace widelimit::propagation {

/// A function F of gaps, 1 - cosine in [0, 2], as the gap times a polynomial of the angle: covariance maps of smooth
/// nonlinearities and of those with kinks are smooth functions of the angle, and F(gap) / gap has a limit at 0.
class AngleInterpolation {
 public:
  /// Chebyshev nodes are doubled until two polynomials agree to 1e-12 of the largest value. Nothing if 512 of them do
  /// not settle. Cost: some hundred evaluations.
  [[nodiscard]] static std::optional<AngleInterpolation> of(const std::function<double(double)>& function);

  /// F, at about a nanosecond a node.
  [[nodiscard]] double operator()(double gap) const;

 private:
  AngleInterpolation(const std::function<double(double)>& function, int nodes);
  [[nodiscard]] double slope(double x) const;  ///< F / gap at the angle pi (x + 1) / 2.

  std::vector<double> coefficients_;  ///< Of Chebyshev polynomials.
};

}  // namespace widelimit::propagation
