#include "widelimit/covariance_sde/exact_distributions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

namespace {

/// The same distribution by another method: implicit finite volumes with exponentially fitted fluxes for p(y, t), y =
/// artanh rho, first order in time, second in space, extrapolated by the caller.
double correlation_distribution_by_volumes(const SdeModel& model, double rho0, double time, double rho,
                                           int cells_a_unit) {
  const double s = model.linear_noise, gap = model.slopes.plus - model.slopes.minus;
  const auto drift = [&](double y) {
    const double r = std::tanh(y), cosh = std::cosh(y);
    const double g = std::sqrt(1 - r * r) - r * std::acos(r);
    return model.relu_drift * gap * gap / (2 * std::numbers::pi) * g * cosh * cosh + s / 2 * r;
  };
  const double h = 1.0 / cells_a_unit, start = std::atanh(rho0);
  const int half = 4 * cells_a_unit, size = 2 * half + 1, steps = 8 * cells_a_unit;
  const auto bernoulli = [](double x) { return std::abs(x) < 1e-8 ? 1 - x / 2 : x / std::expm1(x); };
  std::vector<double> left(static_cast<std::size_t>(size + 1)), right = left,
                                                                p(static_cast<std::size_t>(size), 0), c = p;
  for (int i = 1; i < size; ++i) {  // flux through the face between cells i - 1 and i
    const double x = 2 * drift(start + h * (i - half - 0.5)) * h / s;
    left[static_cast<std::size_t>(i)] = s / (2 * h * h) * bernoulli(-x);
    right[static_cast<std::size_t>(i)] = s / (2 * h * h) * bernoulli(x);
  }
  p[static_cast<std::size_t>(half)] = 1;
  const double dt = time / steps;
  for (int k = 0; k < steps; ++k) {  // Thomas' algorithm
    double previous_c = 0, previous_p = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double lower = -dt * left[i], upper = -dt * right[i + 1];
      const double diagonal = 1 + dt * (right[i] + left[i + 1]) - lower * previous_c;
      c[i] = previous_c = upper / diagonal;
      p[i] = previous_p = (p[i] - lower * previous_p) / diagonal;
    }
    for (std::size_t i = p.size() - 1; i-- > 0;) p[i] -= c[i] * p[i + 1];
  }
  // Cumulated to the face at y; the caller chooses rho on a face of every grid.
  const int face = static_cast<int>(std::lround((std::atanh(rho) - start) / h + half + 0.5));
  double sum = 0;
  for (int i = 0; i < face; ++i) sum += p[static_cast<std::size_t>(i)];
  return sum;
}

}  // namespace

TEST_CASE("exact distributions: correlations agree with finite volumes") {
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.5), {0, -1});
  const DiffusionDistribution distribution = correlation_distribution(model, 0.2, 1.0 / 3);
  for (const double distance : {-0.75, -0.25, 0.25, 0.75}) {
    // Faces lie at half cells: spacing 1 / (2 k) with k odd puts a face at odd multiples of 1 / 4.
    const double rho = std::tanh(std::atanh(0.2) + distance);
    const double coarse = correlation_distribution_by_volumes(model, 0.2, 1.0 / 3, rho, 50);
    const double fine = correlation_distribution_by_volumes(model, 0.2, 1.0 / 3, rho, 150);
    // First order in the time step, which is a third of the coarse one: extrapolate.
    CHECK(distribution.cumulative(rho) == Approx(fine + (fine - coarse) / 2).scale(0).epsilon(3e-4));
    CHECK(distribution.quantile(distribution.cumulative(rho)) == Approx(rho).scale(0).epsilon(1e-12));
  }
}

TEST_CASE("exact distributions: mass, density, symmetry") {
  const DiffusionDistribution distribution =
      correlation_distribution(resnet_model(ResidualWeights::shaped(0.5), {0.3, 0.3}), 0, 0.5);
  CHECK(distribution.total_mass() == Approx(1).scale(0).epsilon(1e-12));
  CHECK(distribution.cumulative(0) == Approx(0.5).scale(0).epsilon(1e-12));
  CHECK(distribution.quantile(0.9) == Approx(-distribution.quantile(0.1)).scale(0).epsilon(1e-11));
  CHECK(distribution.absolute_quantile(0.8) == Approx(distribution.quantile(0.9)).scale(0).epsilon(1e-11));
  CHECK(distribution.density(0.3) ==
        Approx((distribution.cumulative(0.3 + 1e-4) - distribution.cumulative(0.3 - 1e-4)) / 2e-4)
            .scale(0)
            .epsilon(1e-6)
            .scale(0));
  CHECK(distribution.cumulative(1) == distribution.total_mass());
  CHECK(distribution.cumulative(-1) == 0);
}

TEST_CASE("exact distributions: without bend the mean of sinh(artanh rho) grows as e^{s t}") {
  // By Ito from the drift (s / 2) tanh y and the noise s of y = artanh rho.
  const double s = 0.6, horizon = 0.5, rho0 = 0.3;
  const DiffusionDistribution distribution = correlation_distribution({.linear_noise = s}, rho0, horizon);
  double mean = 0;
  const double h = 1e-3;
  for (double y = -7; y < 7; y += h) {
    const double rho = std::tanh(y);
    mean += h * std::sinh(y) * distribution.density(rho) * (1 - rho * rho);
  }
  CHECK(mean == Approx(std::sinh(std::atanh(rho0)) * std::exp(s * horizon)).scale(0).epsilon(1e-8));
}

TEST_CASE("exact distributions: small gaps are log-normal and large ones explode") {
  const ResidualWeights residual = ResidualWeights::shaped(0.125);
  const double s = 0.125 * 1.875, horizon = 0.75;
  const DiffusionDistribution small = gap_distribution(residual, 1, 1e-4, horizon);
  const double median = 1e-4 * std::exp(-s * horizon);
  CHECK(small.quantile(0.5) == Approx(median).scale(0).epsilon(1e-6));
  CHECK(small.quantile(0.841344746068543) ==
        Approx(median * std::exp(std::sqrt(2 * s * horizon))).scale(0).epsilon(1e-5));
  CHECK(small.total_mass() == Approx(1).scale(0).epsilon(1e-10));
  // Mass lost by a long time is the probability of exploding.
  const double lost = 1 - gap_distribution(residual, 0.25, 0.4, 60).total_mass();
  CHECK(lost == Approx(explosion_probability(residual, 0.25, 0.4)).scale(0).epsilon(2e-3));
}

TEST_CASE("exact distributions: where the expansion does not converge is an error, not a number") {
  const auto gap_at = [](double gamma_squared, double time) {
    return gap_distribution(ResidualWeights::shaped(gamma_squared), 1, 0.5, time);
  };
  for (const auto& [gamma_squared, time] :
       {std::pair{0.45, 5.0}, {0.45, 100.0}, {0.3, 20.0}, {0.7, 4.0}, {0.2, 200.0}})
    CHECK_THROWS_WITH_AS((void)gap_at(gamma_squared, time),
                         doctest::Contains("gap_distribution: the expansion does not converge at time"),
                         NumericalError);
  CHECK(gap_at(0.45, 0.05).total_mass() > 0.999);
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.49), {0, -1});
  CHECK(correlation_distribution(resnet, 0.2, 10).total_mass() == Approx(1).scale(0).epsilon(1e-6));
  for (const double time : {16.0, 30.0, 200.0})
    CHECK_THROWS_WITH_AS((void)correlation_distribution(resnet, 0.2, time),
                         doctest::Contains("correlation_distribution: "), Error);
}

TEST_CASE("exact distributions: explosion needs gamma^2 below a half") {
  CHECK(explosion_probability(ResidualWeights::shaped(0.5), 1, 10) == 0);
  CHECK(explosion_probability(ResidualWeights::shaped(0.499), 1, 10) > 0);
  CHECK(explosion_probability(ResidualWeights::shaped(0.3), 1, 1e6) == Approx(1).scale(0).epsilon(1e-3));
  // gamma^2 = 1/4: a = 1, P = (2 / pi) arctan(sqrt(kappa) gap), kappa = 2 gamma^4 / (tau^2 s).
  const double kappa = 2.0 / 16 / (0.25 * 1.75) / 0.25;
  CHECK(explosion_probability(ResidualWeights::shaped(0.25), 0.5, 0.4) ==
        Approx(2 / std::numbers::pi * std::atan(std::sqrt(kappa) * 0.4)).scale(0).epsilon(1e-13));
}

TEST_CASE("exact distributions: growth of one input") {
  // Linear slopes: kappa = 2, the fourth moment of a Gaussian.
  const double n = 50, g = 0.4;
  CHECK(feedforward_growth_variance(ResidualWeights::shaped(g), {1, 1}, 50) ==
        Approx((4 * (1 - g) * g + 2 * g * g * (1 + 2 / n) + 2 * g * g) / n));
  CHECK(attention_growth_variance(ResidualWeights::shaped(g), 50) == Approx(2 * g * (2 - g) / n));
}

TEST_CASE("exact distributions: errors") {
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.5), {0, -1});
  CHECK_THROWS_WITH_AS((void)correlation_distribution(resnet, 1, 1),
                       "correlation_distribution: rho0 must lie in (-1, 1), got 1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)correlation_distribution(resnet, 0, 0),
                       "correlation_distribution: time must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)correlation_distribution(attention_model(ResidualWeights::shaped(0.5), 1), 0, 1),
      "correlation_distribution: the correlation is autonomous only without attention and with noise",
      ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)gap_distribution(ResidualWeights::unit(), 1, 1, 1),
      "gap_distribution: needs lambda^2 + gamma^2 = 1 and gamma > 0, got lambda = 1, gamma = 1",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)gap_distribution(ResidualWeights::shaped(0.5), 1, -1, 1),
                       "gap_distribution: gap0 must be positive and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)correlation_distribution(resnet, 0, 1e30),
                       doctest::Contains("nodes on one side of the start at time 1e+30"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)gap_distribution(ResidualWeights::shaped(0.5), 1, 1, 1e30),
                       doctest::Contains("nodes on one side of the start at time 1e+30"), ArgumentError);
  CHECK_THROWS_AS((void)correlation_distribution(resnet, 0.2, 1).quantile(1), ArgumentError);
  CHECK_THROWS_AS((void)correlation_distribution(resnet, 0.2, 1).quantile(0), ArgumentError);
}
