#pragma once

#include <functional>
#include <string_view>
#include <vector>

/// Distributions of one-dimensional diffusions, by no series: what exploding, deterministic and long-lived laws share.
namespace widelimit::covariance_sde {

/// A diffusion on [low, high] with a reflecting end at low. Its drift is given by the density of its scale function,
/// exp(log_scale_density), so that drift = -variance log_scale_density' / 2.
struct LineDiffusion {
  std::function<double(double)> variance;
  std::function<double(double)> log_scale_density;
  /// Where the law begins; with initial_density, a node within its support.
  double start = 0, low = 0, high = 0;
  /// Density at time 0, smooth on the grid's spacing; without it all mass is at start.
  std::function<double(double)> initial_density = {};
  /// 0: reflecting at high. Otherwise paths leave there: the scale function goes on to the wall, beyond which nothing
  /// returns, by the scale density at high over this.
  double exit_rate = 0;
  /// (mean displacement)^2 / variance by the time asked for, in a coordinate of constant noise, up to a factor: how
  /// far the evolution is from that of a symmetric operator.
  double displacement = 0;
};

/// P(x_T <= x) at low + i spacing, i = 0, 1, ...; and the mass that has not left.
struct LineDistribution {
  double low = 0, spacing = 0;
  std::vector<double> cumulative;
  double mass = 1;
};

/// Source   the diffusion as a random walk on a grid in its natural scale (Feller; Ito & McKean 1974): positive and
///          mass-conserving whatever the drift. exp(T A) by resolvents on the parabola of Trefethen, Weideman &
///          Schmelzer 2006 (2.85^-32), each a tridiagonal system; Richardson's extrapolation in the spacing.
/// Accuracy 1e-8 absolute in every probability, estimated from three grids.
/// Errors   ArgumentError if T asks for more than some thousand substeps, NumericalError if half a million nodes do
///          not reach the accuracy.
/// Cost     some 20 ms; in proportion to displacement at long times.
[[nodiscard]] LineDistribution evolve(std::string_view where, const LineDiffusion& diffusion, double time);

}  // namespace widelimit::covariance_sde
