#include "widelimit/covariance_sde/exact_distributions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "covariance_sde/p_value.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;
using examples::p_value;

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

SdeModel one_head(double gamma_squared, double temperature = 1) {
  return attention_model(ResidualWeights::shaped(gamma_squared), temperature);
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
  const double s = 0.125 * 1.875, horizon = 0.75;
  const DiffusionDistribution small = gap_distribution(one_head(0.125), 1e-4, horizon);
  const double median = 1e-4 * std::exp(-s * horizon);
  CHECK(small.quantile(0.5) == Approx(median).scale(0).epsilon(1e-6));
  CHECK(small.quantile(0.841344746068543) ==
        Approx(median * std::exp(std::sqrt(2 * s * horizon))).scale(0).epsilon(1e-5));
  CHECK(small.total_mass() == Approx(1).scale(0).epsilon(1e-10));
}

TEST_CASE(
    "exact distributions: the mass lost by long times is the probability of exploding, for every gamma^2") {
  const std::pair<SdeModel, double> cases[] = {
      {one_head(0.05, 0.3), 1500},
      {one_head(0.125, 0.25), 500},
      {one_head(0.2), 200},
      {one_head(0.3), 200},
      {one_head(0.45), 100},
      {one_head(0.499), 100},
      {one_head(0.5), 50},
      {one_head(0.7), 50},
      {one_head(1), 30},
      {attention_model(ResidualWeights::shaped(0.7), 1, AttentionMask::full, 4), 100}};
  for (const auto& [model, time] : cases) {
    CAPTURE(model.attention_noise / model.attention_drift);
    CHECK(1 - gap_distribution(model, 0.5, time).total_mass() ==
          Approx(explosion_probability(model, 0.5)).scale(1).epsilon(2e-8));
  }
}

TEST_CASE("exact distributions: moments of gaps that the generator knows, for every gamma^2 and time") {
  // a = w / (4 q), kappa = 2 q / s. With Delta = 1 / (sqrt(kappa) sinh w) the generator is
  // s [d^2 - ((2 a - 2) coth w - (2 a - 1) tanh w) d]; sinh^{2a-1}, which vanishes where paths explode, and cosh^{2-2a}
  // are eigenfunctions of it.
  for (const double gamma_squared : {0.1, 0.25, 0.3, 0.45, 0.49, 0.5, 0.7, 1.0})
    for (const double time : {1e-4, 0.1, 1.0, 4.0}) {
      CAPTURE(gamma_squared);
      CAPTURE(time);
      const SdeModel model = one_head(gamma_squared);
      const double s = model.linear_noise, a = model.attention_drift / (4 * model.attention_noise),
                   kappa = 2 * model.attention_noise / s, start = 0.8;
      const DiffusionDistribution law = gap_distribution(model, start, time);
      const bool explodes = a > 0.5;
      const double power = 2 * a - 1;
      const auto eigenfunction = [&](double gap) {
        return explodes ? std::pow(gap / start, -power)
                        : std::pow((1 + 1 / (kappa * gap * gap)) / (1 + 1 / (kappa * start * start)), 1 - a);
      };
      const double rate = explodes ? power * 2 * a * s : (2 - 2 * a) * (3 - 2 * a) * s;
      if (rate * time > 2) continue;  // what remains would be the tail, of which the law knows too little
      const double deviation = std::sqrt(2 * s * time), centre = -(1 + 2 * std::abs(power)) * s * time,
                   low = centre - 9 * deviation, high = std::max(10 * deviation, deviation < 0.05 ? 0 : 14.0);
      double mean = 0;
      constexpr int points = 8000;
      for (int k = 0; k <= points; ++k) {
        const double gap = start * std::exp(std::lerp(low, high, k / double{points}));
        mean += law.density(gap) * gap * eigenfunction(gap) * (high - low) / points;
      }
      CHECK(mean * std::exp(-rate * time) == Approx(1).scale(0).epsilon(1e-6));
    }
}

TEST_CASE("exact distributions: gaps agree with another method at small gamma^2 and with paths elsewhere") {
  // A spectral expansion between walls, which converges where next to nothing explodes.
  const DiffusionDistribution small = gap_distribution(one_head(0.125), 0.5, 0.5);
  CHECK(small.quantile(0.5) == Approx(0.448161116294).scale(0).epsilon(1e-9));
  CHECK(small.quantile(0.95) == Approx(1.03478319771).scale(0).epsilon(2e-9));
  for (const double gamma_squared : {0.3, 0.45, 0.9}) {
    SimulationOptions options;
    options.times = {2};
    options.paths = 4096;
    options.bounds.upper = 1e12;
    const SdeModel model = one_head(gamma_squared);
    const CovarianceEnsemble ensemble = simulate(model, Matrix<double>{{1, -0.2}, {-0.2, 1}}, options);
    std::vector<double> alive;
    for (const Index path : ensemble.running_paths(0)) {
      const Matrix<double> v = ensemble.covariance(0, path);
      alive.push_back((v(0, 0) + v(1, 1) - 2 * v(0, 1)) / 4);
    }
    const DiffusionDistribution law = gap_distribution(model, 0.6, 2);
    const double mass = law.total_mass();
    CHECK(p_value(alive, [&](double x) { return law.cumulative(x) / mass; }) > 0.01);
  }
}

TEST_CASE("exact distributions: late correlations keep their mass and follow paths") {
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.49), {0, -1});
  for (const double time : {1e-5, 10.0, 16.0, 30.0, 200.0})
    CHECK(correlation_distribution(resnet, 0.2, time).total_mass() == Approx(1).scale(0).epsilon(1e-9));
  SimulationOptions options;
  options.times = {16};
  options.paths = 4096;
  options.max_step = 0.05;
  const CovarianceEnsemble ensemble = simulate(resnet, Matrix<double>{{1, 0.2}, {0.2, 1}}, options);
  const DiffusionDistribution law = correlation_distribution(resnet, 0.2, 16);
  CHECK(p_value(ensemble.correlations(0, 0, 1), [&](double x) { return law.cumulative(x); }) > 0.01);
}

TEST_CASE("exact distributions: late laws are those of times on the way, moved on") {
  // Chapman and Kolmogorov: from y far from 0 the law of the rest is normal. Times up to 200 / s are evolved on a grid.
  const auto tail = [](double z) { return std::erfc(z / std::numbers::sqrt2) / 2; };
  for (const double minus : {-3.0, 0.0}) {
    CAPTURE(minus);
    const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.5), {0, minus});  // s = 1
    const DiffusionDistribution half = correlation_distribution(resnet, 0.2, 190),
                                whole = correlation_distribution(resnet, 0.2, 380);
    CHECK(whole.total_mass() == Approx(1).scale(0).epsilon(1e-9));
    for (const double p : {0.05, 0.3, 0.5, 0.9}) {
      const double y = whole.chart_quantile(p);
      double below = 0;
      constexpr double step = 0.1;
      for (double from = -400; from < 400; from += step)
        below +=
            step * half.chart_density(from) * tail((from + (from > 0 ? 95 : -95) - y) / std::sqrt(190.0));
      CHECK(below == Approx(p).scale(1).epsilon(2e-8));
    }
    // Without a bend both ends are reached; with one all correlations end at 1.
    CHECK(whole.cumulative(0) == Approx(minus == 0 ? half.cumulative(0) : 0).scale(1).epsilon(1e-8));
  }
  const DiffusionDistribution gap = gap_distribution(one_head(0.5), 0.4, 2000);  // s = 3/4, nothing explodes
  CHECK(gap.total_mass() == Approx(1).scale(0).epsilon(1e-9));
  CHECK(gap.chart_quantile(0.5) == Approx(-1500).scale(0).epsilon(1e-2));
  CHECK(gap.chart_quantile(0.841344746068543) - gap.chart_quantile(0.5) ==
        Approx(std::sqrt(3000)).scale(0).epsilon(1e-2));
}

TEST_CASE("exact distributions: late laws are what a grid for the whole time gives") {
  // gamma^2 = .4, tau_0 = 1/2: s T = 160, and some of the gaps explode.
  const DiffusionDistribution law = gap_distribution(one_head(0.4, 0.5), 0.4, 250);
  for (const auto& [p, quantile] : {std::pair{0.01, 1.3943280666e-88},
                                    {0.25, 2.17981477828e-75},
                                    {0.5, 1.12746437015e-69},
                                    {0.75, 5.07026423735e-63}})
    CHECK(law.cumulative(quantile) == Approx(p).scale(1).epsilon(2e-8));
}

TEST_CASE("exact distributions: correlations that linger near -1 are waited for") {
  // c_- = -1: 2e-8 of them are below 0 at 160 / s.
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.5), {0, -1});
  CHECK(correlation_distribution(resnet, 0.2, 160).cumulative(0) == Approx(2.46e-8).scale(0).epsilon(0.1));
  const DiffusionDistribution late = correlation_distribution(resnet, 0.2, 5000);
  CHECK(late.total_mass() == Approx(1).scale(0).epsilon(1e-8));
  CHECK(late.cumulative(0) == 0);
  CHECK(late.chart_quantile(0.5) == Approx(2500).scale(0).epsilon(0.01));
}

TEST_CASE("exact distributions: on both sides of the time from which laws move on they are one") {
  // The grid's law at 199.9 / s, moved by 0.2 / s, and that of 160 / s, moved to 200.1 / s.
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.5), {0, -3});
  const DiffusionDistribution before = correlation_distribution(resnet, -0.5, 199.9),
                              after = correlation_distribution(resnet, -0.5, 200.1);
  for (const double p : {0.01, 0.5, 0.99}) {
    const double y = after.chart_quantile(p);
    double below = 0;
    constexpr double step = 0.05;
    for (double from = 0; from < 300; from += step)
      below += step * before.chart_density(from) * std::erfc((from + 0.1 - y) / std::sqrt(0.4)) / 2;
    CHECK(below == Approx(p).scale(1).epsilon(2e-8));
  }
}

TEST_CASE("exact distributions: two halves of a time are the whole") {
  // Chapman and Kolmogorov for the mass not exploded.
  const SdeModel model = one_head(0.4);
  const DiffusionDistribution half = gap_distribution(model, 0.7, 1);
  double mass = 0;
  constexpr int points = 160;
  for (int k = 0; k < points; ++k) {
    const double u = std::lerp(-9.0, 7.0, (k + 0.5) / points), gap = std::exp(u);
    mass += half.density(gap) * gap * 16 / points * gap_distribution(model, gap, 1).total_mass();
  }
  CHECK(mass == Approx(gap_distribution(model, 0.7, 2).total_mass()).scale(0).epsilon(1e-7));
}

TEST_CASE("exact distributions: explosion needs gamma^2 below a half") {
  CHECK(explosion_probability(one_head(0.5), 10) == 0);
  CHECK(explosion_probability(one_head(0.499), 10) > 0);
  CHECK(explosion_probability(one_head(0.3), 1e6) == Approx(1).scale(0).epsilon(1e-3));
  // gamma^2 = 1/4: a = 1, P = (2 / pi) arctan(sqrt(kappa) gap), kappa = 2 gamma^4 / (tau^2 s).
  const double kappa = 2.0 / 16 / (0.25 * 1.75) / 0.25;
  CHECK(explosion_probability(one_head(0.25, 0.5), 0.4) ==
        Approx(2 / std::numbers::pi * std::atan(std::sqrt(kappa) * 0.4)).scale(0).epsilon(1e-13));
}

TEST_CASE("exact distributions: strong drifts, as a grid that resolves them has them") {
  struct Case {
    const char* what;
    DiffusionDistribution law;
    std::vector<std::pair<double, double>>
        quantiles;  // of up to 65,536 nodes for the whole time, seconds each
  };
  const Case cases[] = {
      {"slopes 30 apart",
       correlation_distribution(mlp_model({0, -30}), 0.2, 0.01),
       {{0.01, 0.599148510077}, {0.05, 0.629468698036}, {0.5, 0.696644982471}, {0.99, 0.776589978849}}},
      {"slopes 60 apart",
       correlation_distribution(mlp_model({0, -60}), 0.2, 1e-3),
       {{0.01, 0.440955499994}, {0.05, 0.455061681086}, {0.5, 0.488371105286}, {0.99, 0.533568998036}}},
      {"narrow gap",
       gap_distribution(one_head(1e-3, 0.01), 0.4, 0.01),
       {{0.01, 0.396863002551}, {0.05, 0.399653761}, {0.5, 0.406522810791}, {0.99, 0.416573238434}}},
      {"narrow gap, later",
       gap_distribution(one_head(1e-3, 0.01), 0.4, 0.1),
       {{0.01, 0.440967794637}, {0.05, 0.452964132253}, {0.5, 0.484520242425}, {0.99, 0.536811751821}}}};
  for (const Case& one : cases) {
    CAPTURE(one.what);
    CHECK(one.law.total_mass() == Approx(1).scale(0).epsilon(1e-9));
    for (const auto& [p, quantile] : one.quantiles)
      CHECK(one.law.cumulative(quantile) == Approx(p).scale(1).epsilon(1e-8));
  }
}

TEST_CASE("exact distributions: any slopes at short times follow the drift") {
  for (const double slope : {-100.0, -1e3, -1e6}) {
    CAPTURE(slope);
    const double time = 10 / (slope * slope), scale = slope * slope / (2 * std::numbers::pi);
    const DiffusionDistribution law = correlation_distribution(mlp_model({0, slope}), 0.2, time);
    CHECK(law.total_mass() == Approx(1).scale(0).epsilon(1e-9));
    const auto speed = [&](double r) { return scale * (std::sqrt(1 - r * r) - r * std::acos(r)); };
    double rho = 0.2;
    constexpr int steps = 10000;
    for (int k = 0; k < steps; ++k) rho += time / steps * speed(rho + time / (2 * steps) * speed(rho));
    CHECK(law.quantile(0.5) == Approx(rho).scale(1).epsilon(2 * time + 1e-8));
  }
}

TEST_CASE("exact distributions: gaps of small gamma^2 at short times") {
  for (const auto& [gamma_squared, time] : {std::pair{1e-4, 1.0}, {1e-5, 1.0}, {1e-6, 0.5}}) {
    CAPTURE(gamma_squared);
    // Next to no drift: log-normal.
    const double s = gamma_squared * (2 - gamma_squared), start = 1e-3;
    const DiffusionDistribution law = gap_distribution(one_head(gamma_squared), start, time);
    CHECK(law.quantile(0.5) == Approx(start * std::exp(-s * time)).scale(0).epsilon(1e-7));
    CHECK(law.quantile(0.841344746068543) ==
          Approx(start * std::exp(-s * time + std::sqrt(2 * s * time))).scale(0).epsilon(1e-7));
    CHECK(gap_distribution(one_head(gamma_squared), 0.4, time).total_mass() ==
          Approx(1).scale(0).epsilon(1e-9));
  }
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
  for (const SdeModel& model :
       {resnet, attention_model(ResidualWeights::shaped(0.5), 1, AttentionMask::causal),
        transformer_model(ResidualWeights::shaped(0.5), 1, {0, -1})})
    CHECK_THROWS_WITH_AS((void)gap_distribution(model, 1, 1),
                         "gap_distribution: the gap is autonomous only under full attention without a ReLU "
                         "drift and with noise",
                         ArgumentError);
  CHECK_THROWS_WITH_AS((void)gap_distribution(one_head(0.5), -1, 1),
                       "gap_distribution: gap0 must be positive and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)correlation_distribution(resnet, 0, 1e30),
                       "correlation_distribution: time must be at most 1e+09 for this model, got 1e+30",
                       ArgumentError);
  // Slopes that differ by a tenth: some correlations stay near -1 for long.
  CHECK_THROWS_WITH_AS(
      (void)correlation_distribution(resnet_model(ResidualWeights::shaped(0.5), {0, -0.1}), 0.2, 601),
      "correlation_distribution: time must be at most 600 for this model, got 601", ArgumentError);
  CHECK_THROWS_AS((void)gap_distribution(one_head(0.5), 1, 1e30), ArgumentError);
  // Gaps at gamma^2 so small that half a million nodes do not resolve the law of those that explode.
  CHECK_THROWS_WITH_AS((void)gap_distribution(one_head(1e-5), 0.4, 1e5),
                       doctest::Contains("nodes do not give the law at time 100000 to 1e-08"),
                       NumericalError);
  CHECK_THROWS_AS((void)correlation_distribution(resnet, 0.2, 1).quantile(1), ArgumentError);
  CHECK_THROWS_AS((void)correlation_distribution(resnet, 0.2, 1).quantile(0), ArgumentError);
}
