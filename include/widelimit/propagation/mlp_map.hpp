#pragma once

#include <memory>
#include <vector>

#include "widelimit/propagation/parameters.hpp"

namespace widelimit::propagation {

/// Output statistics of the MLP branch for equal inputs of unit norm.
struct MlpStatistics {
  std::vector<double> preactivation_variances;  ///< k_0 .. k_{l-1}, per coordinate.
  double k_out = 0;                             ///< Output variance per coordinate.
  double f = 0;                                 ///< Slope of output covariance against input cosine at 1.
};

/// Cost: two dual activations at equal arguments a nonlinearity. Errors: see require_parameters; NumericalError if
/// k_out or f leaves the range of double, naming the gains.
[[nodiscard]] MlpStatistics mlp_statistics(const Parameters& parameters);

/// Covariance of two outputs of the MLP branch as a function of the angle of its inputs, which are
/// normalised. Angles enter as gaps e = 1 - cosine in [0, 2] and outputs as k_out - kappa_out, so that
/// nothing cancels near collapse.
///
/// Method    Price's theorem: E phi(u)^2 - E phi(u) phi(v) is the integral of the dual derivative over
///           [1 - e, 1]; for e below 0.05 that derivative is tabulated (Chebyshev) when first needed.
/// Accuracy  that of the dual activation, 1e-12 relative as a rule.
/// Cost      microseconds a call; making a table up to 50 ms.
/// Errors    NumericalError if the dual derivative can't be interpolated near perfect correlation.
class MlpMap {
 public:
  explicit MlpMap(const Parameters& parameters);
  ~MlpMap();
  MlpMap(MlpMap&&) noexcept;
  MlpMap& operator=(MlpMap&&) noexcept;

  [[nodiscard]] const MlpStatistics& statistics() const { return statistics_; }

  /// k_out - kappa_out at input cosine 1 - gap.
  [[nodiscard]] double output_gap(double gap) const;

  /// d kappa_out / d cosine at input cosine 1 - gap: f_o, which is f at 0.
  [[nodiscard]] double slope(double gap) const;

  /// d^2 kappa_out / d cosine^2 at cosine 1: f_2. NumericalError if phi' is not smooth (ReLU).
  [[nodiscard]] double curvature() const;

 private:
  struct Layer;

  MlpStatistics statistics_;
  double first_variance_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace widelimit::propagation
