#pragma once

#include <vector>

#include "widelimit/covariance_sde/model.hpp"

/// Distributions of the SDE that need no sampling (docs/theory/covariance-sde.md, section 7).
namespace widelimit::covariance_sde {

/// Distribution at one time of a one-dimensional diffusion dz = mu(z) dt + dB on a half line or the line, by a sinc
/// expansion of the symmetrised generator: exponentially accurate in the number of nodes. Made by the
/// functions below.
class DiffusionDistribution {
 public:
  /// P(x_T <= x). Mass that exploded counts as above every x.
  [[nodiscard]] double cumulative(double x) const;
  [[nodiscard]] double density(double x) const;
  /// Smallest x with cumulative(x) = p. Errors: ArgumentError unless 0 < p < total mass.
  [[nodiscard]] double quantile(double p) const;
  /// P(|x_T| <= x) = p solved for x.
  [[nodiscard]] double absolute_quantile(double p) const;
  /// Mass not exploded.
  [[nodiscard]] double total_mass() const;

 private:
  friend DiffusionDistribution correlation_distribution(const SdeModel&, double, double);
  friend DiffusionDistribution gap_distribution(ResidualWeights, double, double, double);

  /// The observable as a function of the coordinate z of unit noise.
  enum class Chart { correlation, gap };
  struct Coordinates {
    Chart chart;
    double scale;  ///< tanh(scale z), or 1 / (sqrt(curvature) sinh(-scale z)).
    double curvature;
  };

  DiffusionDistribution(Coordinates coordinates, double first, double spacing, std::vector<double> values);

  [[nodiscard]] double to_z(double x) const;
  [[nodiscard]] double to_x(double z) const;
  [[nodiscard]] double z_density(double z) const;
  [[nodiscard]] double z_cumulative(double z) const;
  [[nodiscard]] double last() const;

  Coordinates coordinates_;
  double first_, spacing_;      // nodes first + j spacing
  std::vector<double> values_;  // density of z at the nodes
};

/// Correlation of any two tokens at time T under a model without attention and of full linear noise (ResNet,
/// MLP):
///     d rho = [r nu(rho) - (s / 2) rho (1 - rho^2)] dt + sqrt(s) (1 - rho^2) dB,  r, s = relu_drift,
///     linear_noise.
///
/// Accuracy  1e-10 for quantiles from 5 to 95 percent.
/// Errors    ArgumentError if the model attends or has no noise, unless -1 < rho0 < 1 and time > 0; NumericalError at times
///           that leave more or less than all of the mass (a residual network of gamma = .7: from 14 on).
/// Cost      an eigenproblem of some 250 nodes, about 30 ms.
[[nodiscard]] DiffusionDistribution correlation_distribution(const SdeModel& model, double rho0, double time);

/// Gap (V^11 + V^22 - 2 V^12) / 4 of two tokens under shaped attention at time T, started at gap0:
///     d Delta = (gamma^2 / tau_0^2) Delta^3 dt + sqrt(2 s Delta^2 + 4 gamma^4 Delta^4 / tau_0^2) dB.
///
/// Accuracy  2e-9 for quantiles from 5 to 95 percent while less than 1e-3 of the mass has exploded by T; the
///           expansion converges algebraically at the wall where explosion is possible.
/// Errors    ArgumentError unless the residual weights preserve variance, gamma, temperature, gap0 and time
///           are positive; NumericalError where the expansion is known not to converge: once more mass has gone than ever
///           explodes, and for gamma^2 > 1/4 once more than 1e-3 has.
[[nodiscard]] DiffusionDistribution gap_distribution(ResidualWeights residual, double temperature,
                                                     double gap0, double time);

/// Probability that two tokens under shaped attention, with gap gap0, explode in finite time: 0 from gamma^2
/// = 1/2 on, 1 minus the probability that the gap closes otherwise (Feller's test). Errors as above.
[[nodiscard]] double explosion_probability(ResidualWeights residual, double temperature, double gap0);

/// Var(V' / V) of one feedforward block with one input at finite width, exact. hidden width = width.
[[nodiscard]] double feedforward_growth_variance(ResidualWeights residual, ActivationSlopes slopes,
                                                 Index width);

/// The same of an attention block with one token: 2 gamma^2 (2 - gamma^2) / n.
[[nodiscard]] double attention_growth_variance(ResidualWeights residual, Index width);

}  // namespace widelimit::covariance_sde
