#include "widelimit/covariance_sde/simulate.hpp"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "covariance_sde/example_covariances.hpp"
#include "covariance_sde/p_value.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/time_step.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/statistics.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;
using examples::p_value;

namespace {

using Dense = Matrix<double>;

SimulationOptions options_to(double horizon, Index paths, std::uint64_t seed = 1) {
  SimulationOptions options;
  options.times = {horizon};
  options.paths = paths;
  options.seed = seed;
  return options;
}

bool same_bits(const CovarianceEnsemble& a, const CovarianceEnsemble& b, Index paths) {
  for (Index time = 0; time < static_cast<Index>(a.times().size()); ++time)
    for (Index path = 0; path < paths; ++path)
      if (a.covariance(time, path) != b.covariance(time, path)) return false;
  return true;
}

}  // namespace

TEST_CASE("simulate: equal bits for any number of threads and for a larger ensemble") {
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.3), 1, {0, -1});
  for (const Dense& v : {examples::two_tokens(), examples::c(), examples::e(), examples::random(5, 1)}) {
    SimulationOptions options = options_to(0.3, 50);
    options.times = {0.1, 0.3};
    options.threads = 1;
    const CovarianceEnsemble one = simulate(model, v, options);
    options.threads = 2;
    CHECK(same_bits(one, simulate(model, v, options), 50));
    options.threads = 5;
    options.paths = 73;
    CHECK(same_bits(one, simulate(model, v, options), 50));
    options.seed = 2;
    CHECK_FALSE(same_bits(one, simulate(model, v, options), 50));
  }
}

TEST_CASE("simulate: every size makes the public geometric steps with the documented draws") {
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.3), 1, {0, -1});
  for (const Dense& v0 : {examples::two_tokens(), examples::c(), examples::e(), examples::random(5, 1)}) {
    const SimulationOptions options = options_to(0.03, 1);
    numerics::RandomStream stream(options.seed, 0);
    const Index m = v0.rows();
    Dense v = v0;
    for (int k = 0; k < 3; ++k) {
      StepNoise noise{Dense::Zero(m, m),
                      Dense(m, m)};  // documented order: G_1 + G_1^T by pairs, then G_2 by rows
      for (Index a = 0; a < m; ++a)
        for (Index b = a; b < m; ++b) noise.g1(a, b) = (a == b ? 1 : std::numbers::sqrt2) * stream.normal();
      for (double& z : noise.g2.reshaped<Eigen::RowMajor>()) z = stream.normal();
      v = geometric_step(model, v, 0.01, noise);
    }
    CHECK((simulate(model, v0, options).covariance(0, 0) - v).cwiseAbs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("simulate: correlations of the ResNet follow their exact distribution, and no other") {
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.5), {0, -1});
  const CovarianceEnsemble ensemble = simulate(model, examples::two_tokens(), options_to(1.0 / 3, 8192));
  const auto correlations = ensemble.correlations(0, 0, 1);
  const DiffusionDistribution distribution = correlation_distribution(model, 0.2, 1.0 / 3);
  CHECK(p_value(correlations, [&](double x) { return distribution.cumulative(x); }) > 0.01);
  SdeModel wrong = model;
  wrong.linear_noise *= 0.75;  // gamma^2 (2 - gamma^2), the factor of attention
  const DiffusionDistribution other = correlation_distribution(wrong, 0.2, 1.0 / 3);
  CHECK(p_value(correlations, [&](double x) { return other.cumulative(x); }) < 1e-6);
  CHECK(ensemble.cone_exits() == 0);
}

TEST_CASE("simulate: the gap of two tokens under attention follows its exact distribution") {
  const ResidualWeights residual = ResidualWeights::shaped(0.125);
  const CovarianceEnsemble ensemble =
      simulate(attention_model(residual, 1), examples::two_tokens(), options_to(0.75, 8192));
  const auto v00 = ensemble.entries(0, 0, 0), v11 = ensemble.entries(0, 1, 1);
  auto gap = ensemble.entries(0, 0, 1);
  for (std::size_t i = 0; i < gap.size(); ++i) gap[i] = (v00[i] + v11[i] - 2 * gap[i]) / 4;
  const DiffusionDistribution distribution = gap_distribution(attention_model(residual, 1), 0.4, 0.75);
  CHECK(p_value(gap, [&](double x) { return distribution.cumulative(x); }) > 0.01);
  const DiffusionDistribution other = gap_distribution(attention_model(residual, 0.5), 0.4, 0.75);
  CHECK(p_value(gap, [&](double x) { return other.cumulative(x); }) < 1e-3);
}

TEST_CASE("simulate: one token is log-normal, log det V is normal without bend") {
  const double s = 0.8, horizon = 0.5;
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.4), {0.3, 0.3});
  const auto normal = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  for (const Index tokens : {1, 3}) {
    const Dense v0 = tokens == 1 ? Dense{{2.0}} : examples::c();
    SimulationOptions options = options_to(horizon, 4096);
    options.max_step = 0.1;
    const CovarianceEnsemble ensemble = simulate(model, v0, options);
    std::vector<double> scores;
    const double m = static_cast<double>(tokens);
    for (Index path = 0; path < ensemble.paths(); ++path) {
      const double change = std::log(ensemble.covariance(0, path).determinant() / v0.determinant());
      scores.push_back((change + s / 2 * m * (m + 1) * horizon) / std::sqrt(2 * s * m * horizon));
    }
    CHECK(p_value(scores, normal) > 0.01);
  }
}

TEST_CASE(
    "simulate: Euler-Maruyama with structured and with dense noise has one distribution, biased at a coarse "
    "step") {
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.5), 1, {0, -1});
  SimulationOptions options = options_to(0.1, 4096);
  options.scheme = StepScheme::euler_maruyama;
  const auto structured = simulate(model, examples::c(), options).correlations(0, 0, 2);
  options.scheme = StepScheme::euler_maruyama_dense;
  options.seed = 2;
  const auto dense = simulate(model, examples::c(), options).correlations(0, 0, 2);
  CHECK(p_value(structured, dense) > 0.01);

  // Theory note 5.3: at gamma = 1 and step 0.083 Euler leaves the cone 0.6 times a path; the geometric scheme
  // never.
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(1), {0, -1});
  SimulationOptions coarse = options_to(1.0 / 3, 4096);
  coarse.max_step = 0.084;
  coarse.scheme = StepScheme::euler_maruyama;
  const CovarianceEnsemble euler = simulate(resnet, examples::two_tokens(), coarse);
  CHECK(static_cast<double>(euler.cone_exits()) / 4096 == Approx(0.6).scale(0).epsilon(0.1));
  for (Index path = 0; path < 4096; ++path) {
    const Dense v = euler.covariance(0, path);
    CHECK(v(0, 0) * v(1, 1) - v(0, 1) * v(0, 1) >=
          -1.01e-12 * v(0, 0) * v(1, 1));  // the documented tolerance
  }
  coarse.scheme = StepScheme::geometric;
  const CovarianceEnsemble geometric = simulate(resnet, examples::two_tokens(), coarse);
  CHECK(geometric.cone_exits() == 0);
  const DiffusionDistribution distribution = correlation_distribution(resnet, 0.2, 1.0 / 3);
  const auto distance = [&](const CovarianceEnsemble& ensemble) {
    return numerics::kolmogorov_smirnov_distance(ensemble.correlations(0, 0, 1),
                                                 [&](double x) { return distribution.cumulative(x); });
  };
  CHECK(distance(geometric) < 0.03);
  CHECK(distance(euler) > 0.1);
}

TEST_CASE(
    "simulate: the causal model runs by Euler-Maruyama, structured or dense; its first token keeps its "
    "mean") {
  const SdeModel model = attention_model(ResidualWeights::shaped(0.5), 1, AttentionMask::causal);
  SimulationOptions options = options_to(0.2, 4096);
  std::vector<std::vector<double>> last;
  for (const StepScheme scheme : {StepScheme::euler_maruyama, StepScheme::euler_maruyama_dense}) {
    options.scheme = scheme;
    const CovarianceEnsemble paths = simulate(model, examples::c(), options);
    const numerics::Estimate mean = numerics::mean(paths.entries(0, 0, 0));
    CHECK(std::abs(mean.value - 1.2) < 4 * mean.standard_error);
    last.push_back(paths.correlations(0, 1, 2));
    ++options.seed;
  }
  CHECK(examples::p_value(last[0], last[1]) > 1e-3);
  options.scheme = StepScheme::geometric;
  CHECK_THROWS_AS((void)simulate(model, examples::c(), options), ArgumentError);
}

TEST_CASE("simulate: paths stop at the first state outside the bounds and keep the last one inside") {
  const SdeModel model = resnet_model(ResidualWeights::shaped(1), {0, -1});
  SimulationOptions options = options_to(1, 512);
  options.times = {0.25, 0.5, 1};
  options.bounds = {0.3, 3};
  const CovarianceEnsemble ensemble = simulate(model, examples::two_tokens(), options);
  const Index above = ensemble.count(PathEnd::above), below = ensemble.count(PathEnd::below);
  CHECK(above > 20);
  CHECK(below > 20);
  CHECK(above + below + ensemble.count(PathEnd::horizon) == 512);
  const auto largest = ensemble.largest_eigenvalues(2);
  for (Index path = 0; path < 512; ++path) {
    const PathOutcome& outcome = ensemble.outcome(path);
    const Dense end = ensemble.covariance(2, path);
    if (outcome.end == PathEnd::horizon) {
      CHECK(outcome.stop_time == 1);
      CHECK(outcome.last_inside_time == 1);
      CHECK(largest[static_cast<std::size_t>(path)] <= 3);
      continue;
    }
    CHECK(outcome.last_inside_time == Approx(outcome.stop_time - 0.01));
    CHECK(largest[static_cast<std::size_t>(path)] <= 3);
    if (outcome.stop_time <= 0.5) CHECK(ensemble.covariance(1, path) == end);
    if (outcome.last_inside_time > 0.5) CHECK(ensemble.covariance(1, path) != end);
  }
  const auto running = ensemble.running_paths(2), stopped = ensemble.stopped_paths(2);
  CHECK(static_cast<Index>(running.size()) == ensemble.count(PathEnd::horizon));
  CHECK(running.size() + stopped.size() == 512);
  CHECK(ensemble.running_paths(0).size() > running.size());
  for (const Index path : stopped) CHECK(ensemble.outcome(path).end != PathEnd::horizon);
}

TEST_CASE("simulate: step control keeps Euler from inventing explosions") {
  // gamma^2 = 1/2: the gap cannot explode, but V = 30 moves far within one step of 0.01.
  const SdeModel model = attention_model(ResidualWeights::shaped(0.5), 1);
  SimulationOptions options = options_to(0.05, 1024);
  const Dense v0 = 30 * examples::two_tokens();
  const auto stopped = [&](StepScheme scheme, double control, std::uint64_t seed) {
    options.scheme = scheme;
    options.step_control = control;
    options.seed = seed;
    return 1 - static_cast<double>(simulate(model, v0, options).count(PathEnd::horizon)) / 1024;
  };
  const double fine = stopped(StepScheme::geometric, 0.01, 1);
  const double error = std::sqrt(2 * fine * (1 - fine) / 1024);
  CHECK(std::abs(stopped(StepScheme::euler_maruyama, 0.02, 2) - fine) < 4 * error);
  CHECK(stopped(StepScheme::euler_maruyama, 0, 3) - fine > 10 * error);
}

std::vector<double> of_paths(const std::vector<double>& values, const std::vector<Index>& paths) {
  std::vector<double> chosen;
  for (const Index path : paths) chosen.push_back(values[static_cast<std::size_t>(path)]);
  return numerics::sorted(chosen);
}

/// Median over the paths that stopped, of the largest eigenvalue in their last state inside the bounds.
double last_eigenvalue_inside(const CovarianceEnsemble& ensemble) {
  return numerics::quantile(of_paths(ensemble.largest_eigenvalues(0), ensemble.stopped_paths(0)), 0.5).value;
}

TEST_CASE("simulate: by default steps are small enough where attention makes paths explode") {
  // 2.4 % of the paths stop. A separate Euler-Maruyama program with steps of 0.0005 gives, for the
  // correlation of the first and the last token of the others, a median of -.0732(23) and a 95 % quantile of
  // .7989(17).
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.3), 0.9, {0.5, -0.8});
  const Dense v0{{1.3, 0.4, -0.2}, {0.4, 0.8, 0.1}, {-0.2, 0.1, 1.6}};
  SimulationOptions options = options_to(0.4, 8192);
  const CovarianceEnsemble ensemble = simulate(model, v0, options);
  const std::vector<double> correlations =
      of_paths(ensemble.correlations(0, 0, 2), ensemble.running_paths(0));
  const auto check_near = [&](double p, double expected, double its_error) {
    const auto quantile = numerics::quantile(correlations, p);
    CHECK(std::abs(quantile.value - expected) < 3 * std::hypot(quantile.standard_error, its_error));
  };
  check_near(0.5, -0.0732, 0.0023);
  check_near(0.95, 0.7989, 0.0017);
  const double stopped = 1 - static_cast<double>(correlations.size()) / 8192;
  CHECK(std::abs(stopped - 0.0243) < 0.005);
  // Small steps end close to the bound, fixed ones leap over it from afar: 9226 and 133 with 400 000 paths.
  CHECK(last_eigenvalue_inside(ensemble) > 8000);
  options.step_control = 0;
  CHECK(last_eigenvalue_inside(simulate(model, v0, options)) < 500);
  options.step_control = default_step_control;
  CHECK(same_bits(simulate(model, v0, options), ensemble, 8192));
}

TEST_CASE("simulate: explosions happen with the probability of Feller's test [slow]") {
  const ResidualWeights residual = ResidualWeights::shaped(0.125);
  SimulationOptions options = options_to(40, 2000);
  options.max_step = 0.05;
  options.step_control = 0.005;
  options.bounds.upper = 1e7;
  const CovarianceEnsemble ensemble =
      simulate(attention_model(residual, 0.25), examples::two_tokens(), options);
  const double expected = explosion_probability(attention_model(residual, 0.25), 0.4);
  const double fraction = static_cast<double>(ensemble.count(PathEnd::above)) / 2000;
  CHECK(std::abs(fraction - expected) < 4 * std::sqrt(expected * (1 - expected) / 2000));
}

TEST_CASE("simulate: small gamma makes the noise vanish next to 1 / sqrt(n)") {
  // gamma = 1 / sqrt(d), T = d / n: sd(rho) = sqrt(2 / n) (1 - rho^2) to first order
  // (docs/theory/covariance-sde.md, 7.5).
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.01), {0, -1});
  const CovarianceEnsemble ensemble = simulate(model, examples::two_tokens(), options_to(1.0 / 3, 8192));
  const double deviation = std::sqrt(numerics::variance(ensemble.correlations(0, 0, 1)).value);
  CHECK(deviation == Approx(std::sqrt(2.0 / 300) * 0.96).scale(0).epsilon(0.03));
}

TEST_CASE("simulate: errors name the option") {
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.5), {0, -1});
  const auto run = [&](auto change) {
    SimulationOptions options = options_to(1, 4);
    change(options);
    (void)simulate(model, examples::two_tokens(), options);
  };
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.times = {}; }),
                       "simulate: times must hold at least the horizon, got none", ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) {
                         o.times = {0.5, 0.5};
                       }),
                       "simulate: times must be positive, finite and increasing, got 0.5 after 0.5",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.max_step = 0; }),
                       "simulate: max_step must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.paths = 0; }), "simulate: paths must be at least 1, got 0",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.step_control = 1e-300; }),
                       "simulate: step_control must be 0 or at least 1e-06, got 1e-300", ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.step_control = -1; }),
                       "simulate: step_control must be positive and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) { o.max_step = 1e-20; }),
                       "simulate: steps of max_step 1e-20 from time 0 to 1: expected 0 to 1e+09, got 1e+20",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      run([](auto& o) {
        o.times = {0.5, 1e9};
      }),
      "simulate: steps of max_step 0.01 from time 0.5 to 1e+09: expected 0 to 1e+09, got 1e+11",
      ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) {
                         o.bounds = {2, 1};
                       }),
                       "simulate: stopping bounds must satisfy 0 <= lower < upper, got 2 and 1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(run([](auto& o) {
                         o.bounds = {0, 1};
                       }),
                       "simulate: the eigenvalues of V_0 must lie within the stopping bounds 0 and 1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)simulate(model, Dense{{1, 2}, {2, 1}}, options_to(1, 4)),
                       "simulate: a covariance must be positive semidefinite, got eigenvalues from -1 to 3",
                       ArgumentError);
  const double beyond = 1 + 1e-11;  // passes for a covariance, but not for the start of a path
  CHECK_THROWS_WITH_AS(
      (void)simulate(model, examples::two_tokens(beyond), options_to(1, 4)),
      "simulate: V_0 must be positive semidefinite to rounding, got a pivot below -1e-12 of its variance",
      ArgumentError);
  CHECK_NOTHROW((void)simulate(model, examples::two_tokens(1), options_to(0.1, 4)));
  const CovarianceEnsemble ensemble = simulate(model, Dense{{1.0}}, options_to(0.1, 4));
  CHECK_THROWS_WITH_AS((void)ensemble.mean_correlations(0),
                       "CovarianceEnsemble::mean_correlations: needs at least two tokens, got 1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)ensemble.entries(0, 0, 1),
                       "CovarianceEnsemble::entries: token must lie in [0, 1), got 1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)ensemble.covariance(1, 0),
                       "CovarianceEnsemble: time and path must lie in [0, 1) and [0, 4), got 1 and 0",
                       ArgumentError);
}
