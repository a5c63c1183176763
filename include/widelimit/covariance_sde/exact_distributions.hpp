#pragma once

#include <memory>
#include <vector>

#include "widelimit/covariance_sde/model.hpp"

/// Distributions of the SDE that need no sampling (docs/theory/covariance-sde.md, section 7).
namespace widelimit::covariance_sde {

struct LineDistribution;

/// The longest time of the distributions below: 1e9 over linear_noise. If slopes differ, but so little that relu_drift
/// (c_+ - c_-)^2 / (2 pi) is below 0.02 linear_noise, it is 600 over linear_noise: correlations
/// then stay near -1 for longer than a grid can follow.
[[nodiscard]] double longest_law_time(const SdeModel& model);

/// The shortest time: 1e-16 over linear_noise. Laws of shorter ones are so narrow that the rounding of places is more
/// than 1e-8 of a probability.
[[nodiscard]] double shortest_law_time(const SdeModel& model);

/// Distribution at one time of a one-dimensional diffusion on a half line or the line. Made by the functions below.
class DiffusionDistribution {
 public:
  /// P(x_T <= x). Mass that exploded counts as above every x. At NaN this and the densities are NaN.
  [[nodiscard]] double cumulative(double x) const;
  [[nodiscard]] double density(double x) const;
  /// Smallest x with cumulative(x) = p. Errors: ArgumentError unless 0 < p < total mass.
  [[nodiscard]] double quantile(double p) const;
  /// The same in the chart in which the distribution is computed, artanh of a correlation or the natural logarithm of a
  /// gap: late correlations round to 1 or -1, and late gaps to 0. Errors as quantile().
  [[nodiscard]] double chart_quantile(double p) const;
  /// Density of the chart's coordinate there.
  [[nodiscard]] double chart_density(double y) const;
  /// P(|x_T| <= x) = p solved for x.
  [[nodiscard]] double absolute_quantile(double p) const;
  /// The probability of not having exploded.
  [[nodiscard]] double total_mass() const { return mass_; }

 private:
  friend DiffusionDistribution correlation_distribution(const SdeModel&, double, double);
  friend DiffusionDistribution gap_distribution(const SdeModel&, double, double);

  /// The coordinate in which the distribution is computed: artanh of a correlation, the logarithm of a gap.
  enum class Chart { correlation, gap };
  struct Interpolant;

  /// A sum of distributions in the chart.
  DiffusionDistribution(Chart chart, const std::vector<LineDistribution>& parts);

  [[nodiscard]] double to_y(double x) const;
  [[nodiscard]] double to_x(double y) const;
  [[nodiscard]] double cumulative_of_y(double y) const;

  Chart chart_;
  double first_, last_;  // y of the outer nodes
  double mass_;
  std::shared_ptr<const Interpolant> interpolant_;  // of the cumulative distributions of y
};

/// Correlation of any two tokens at time T under a model without attention and of full linear noise (ResNet,
/// MLP):
///     d rho = [r nu(rho) - (s / 2) rho (1 - rho^2)] dt + sqrt(s) (1 - rho^2) dB,  r, s = relu_drift,
///     linear_noise.
///
/// Accuracy  1e-8 in every probability.
/// Errors    ArgumentError if the model attends or has no noise, unless -1 < rho0 < 1, shortest_law_time() <= time <=
///           longest_law_time(); NumericalError if half a million nodes do not resolve the distribution (slopes above
///           100 apart, at some s T between 0.003 and 1).
/// Cost      20 to 100 ms; from s T of ten on more, up to seconds at s T of 600, and no more beyond
///           (docs/theory/covariance-sde.md, section 7.2); seconds for slopes 60 apart, 25 s for 100.
[[nodiscard]] DiffusionDistribution correlation_distribution(const SdeModel& model, double rho0, double time);

/// Gap (V^11 + V^22 - 2 V^12) / 4 of two tokens under shaped attention at time T, started at gap0:
///     d Delta = w Delta^3 dt + sqrt(2 s Delta^2 + 4 q Delta^4) dB,  w, s, q = attention_drift, linear_noise,
///     attention_noise.
///
/// Accuracy  1e-8 in every probability, for every gamma^2 and number of heads.
/// Errors    ArgumentError unless the model has full attention and no ReLU drift, gap0 is positive and
///           shortest_law_time() <= time <= longest_law_time(); NumericalError as above (gamma^2 below about 1e-4 where
///           gaps explode).
/// Cost      as above.
[[nodiscard]] DiffusionDistribution gap_distribution(const SdeModel& model, double gap0, double time);

/// Probability that two tokens under shaped attention, with gap gap0, explode in finite time: 1 minus the probability
/// that the gap closes (Feller's test), 0 for w <= 2 q, which is gamma^2 >= 1/2 with one head. Errors as above.
[[nodiscard]] double explosion_probability(const SdeModel& model, double gap0);

/// Var(V' / V) of one feedforward block with one input at finite width, exact. hidden width = width.
[[nodiscard]] double feedforward_growth_variance(ResidualWeights residual, ActivationSlopes slopes,
                                                 Index width);

/// The same for an attention block with one token: 2 gamma^2 (2 - gamma^2) / n.
[[nodiscard]] double attention_growth_variance(ResidualWeights residual, Index width);

}  // namespace widelimit::covariance_sde
