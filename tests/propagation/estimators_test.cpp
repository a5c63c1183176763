#include "widelimit/propagation/estimators.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using numerics::Estimate;

namespace {

/// The note's band: three standard errors, and what is left of 1/d at d >= 128.
constexpr double finite_width = 0.02;

bool agrees(const Estimate& measured, double theory, double slack = finite_width) {
  return std::abs(measured.value - theory) <= 3 * measured.standard_error + slack;
}

struct Case {
  double alpha_A, alpha_M, sigma_w;
  OutputGain gain;
};

const Case cases[] = {{0.5, 0.5, 2.25, OutputGain::unit()}, {0.3, 0.3, 1, OutputGain::unit()},
                      {0.8, 0.4, 3, OutputGain::unit()},    {0.4, 0.8, 3, OutputGain::unit()},
                      {0.9, 0.9, 0.5, OutputGain::unit()},  {0.5, 0.5, 2.25, OutputGain::shared()},
                      {0.8, 0.4, 3, OutputGain::shared()}};

Parameters parameters_of(const Case& given, Index tokens) {
  Parameters parameters;
  parameters.alpha_A = given.alpha_A;
  parameters.alpha_M = given.alpha_M;
  parameters.sigma_w = given.sigma_w;
  parameters.sigma_out = given.gain;
  parameters.tokens = tokens;
  return parameters;
}

SampleOptions sample(Index width, Index networks, AttentionMask mask = AttentionMask::full) {
  SampleOptions options;
  options.width = width;
  options.networks = networks;
  options.mask = mask;
  options.seed = 1;
  return options;
}

void check_angles(const Case& given, Index tokens, const SampleOptions& options) {
  const Parameters parameters = parameters_of(given, tokens);
  const BlockMap map(parameters);
  const double q_star = collapsed_point(parameters).q_star;
  for (const double q0 : {1.0, q_star}) {
    const Estimate measured = measured_angle_exponent(parameters, q0, 0.99, options);
    CAPTURE(given.alpha_A);
    CAPTURE(given.sigma_w);
    CAPTURE(q0);
    CAPTURE(measured.value);
    CAPTURE(measured.standard_error);
    CHECK(agrees(measured, one_block_exponent(map, q0, 0.01)));
    MESSAGE("angle (", given.alpha_A, ", ", given.alpha_M, ", ", given.sigma_w, ") from ", q0, ": ",
            measured.value, " +- ", measured.standard_error, ", theory ", one_block_exponent(map, q0, 0.01));
  }
}

void check_modes(const Case& given, Index depth, const SampleOptions& options) {
  const Parameters parameters = parameters_of(given, 256);
  const CollapsedPoint point = collapsed_point(parameters);
  const MeasuredModes modes = measured_gradient_modes(parameters, depth, options);
  MESSAGE("modes (", given.alpha_A, ", ", given.alpha_M, ", ", given.sigma_w, "): ", modes.contrast.value,
          " +- ", modes.contrast.standard_error, ", theory ", point.lambda_a_log(), "; ", modes.mean.value,
          " +- ", modes.mean.standard_error, ", theory ", infinite_gradient_exponent(point));
  CHECK(agrees(modes.contrast, point.lambda_a_log()));
  CHECK(agrees(modes.mean, infinite_gradient_exponent(point)));
}

void check_gradient(const Case& given, Index tokens, Index depth, const SampleOptions& options) {
  const Parameters parameters = parameters_of(given, tokens);
  const CollapsedPoint point = collapsed_point(parameters);
  const double theory =
      options.mask == AttentionMask::causal
          ? causal_gradient_exponent(parameters, depth)
          : gradient_exponent(point, static_cast<double>(tokens), static_cast<double>(depth));
  const MeasuredGradient measured =
      measured_gradient_exponent(parameters, TokenDistribution::equal(point.q_star), depth, options);
  MESSAGE("gradient (", given.alpha_A, ", ", given.alpha_M, ", ", given.sigma_w,
          "): ", measured.log_of_mean.value, " +- ", measured.log_of_mean.standard_error, ", theory ",
          theory);
  CHECK(agrees(measured.log_of_mean, theory));
  CHECK(measured.mean_of_log.value <= measured.log_of_mean.value);
  // The standard error of the mean logarithm is that of its variance.
  const double length = static_cast<double>(depth), networks = static_cast<double>(options.networks);
  CHECK(measured.variance_of_log ==
        Approx(std::pow(measured.mean_of_log.standard_error * length, 2) * networks));
}

}  // namespace

TEST_CASE("estimators: drawn tokens have the norms and angles of their distribution") {
  const Index n = 400, d = 300;
  const TokenState wide = measured_state(TokenDistribution::gaussian(2, 0.3).draw(n, d, 1, 0));
  CHECK(wide.q == Approx(2).scale(0).epsilon(0.1));
  CHECK(wide.cosine() == Approx(0.3).scale(0).epsilon(0.25));
  const Matrix<double> equal = TokenDistribution::equal(0.7).draw(5, d, 1, 2);
  CHECK(measured_state(equal).q == Approx(0.7).scale(0).epsilon(1e-13));
  CHECK(measured_state(equal).gap < 1e-28);
  CHECK(TokenDistribution::equal(0.7).draw(5, d, 1, 2) == equal);
  CHECK(TokenDistribution::equal(0.7).draw(5, d, 1, 3) != equal);
}

TEST_CASE("estimators: the measured gap keeps its digits") {
  Matrix<double> tokens = Matrix<double>::Constant(2, 2, 1);
  tokens(0, 0) += 1e-9;
  CHECK(measured_state(tokens).gap == Approx(1e-18 / 4).scale(0).epsilon(1e-6));  // |x_0 - x_1|^2 / (2 d)
  Matrix<double> generic(3, 2);
  generic << 1, 2, 3, 4, -1, 0.5;
  const double p = (generic.row(0).dot(generic.row(1)) + generic.row(0).dot(generic.row(2)) +
                    generic.row(1).dot(generic.row(2))) /
                   6;
  CHECK(measured_state(generic).p() == Approx(p).scale(0).epsilon(1e-13));
}

TEST_CASE("estimators: results do not depend on the number of threads") {
  Parameters parameters = parameters_of(cases[0], 4);
  SampleOptions options = sample(16, 6);
  options.threads = 1;
  const auto one = measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.5), 3, options);
  const auto gradient = measured_gradient_exponent(parameters, TokenDistribution::equal(1), 3, options);
  options.threads = 2;
  const auto two = measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.5), 3, options);
  for (std::size_t t = 0; t < one.size(); ++t) {
    CHECK(one[t].q.value == two[t].q.value);
    CHECK(one[t].cosine.standard_error == two[t].cosine.standard_error);
  }
  CHECK(measured_gradient_exponent(parameters, TokenDistribution::equal(1), 3, options).log_of_mean.value ==
        gradient.log_of_mean.value);
}

TEST_CASE("estimators: norms and angles follow the maps (few networks)") {
  const double alpha = 1 / std::sqrt(8.0);
  const Parameters parameters = parameters_of({alpha, alpha, 2, OutputGain::unit()}, 32);
  const auto measured =
      measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.5), 4, sample(128, 24));
  const auto theory = BlockMap(parameters).trajectory(TokenState::from_cosine(1, 0.5), 4);
  for (std::size_t t = 0; t < theory.size(); ++t) {
    CHECK(agrees(measured[t].q, theory[t].q));
    CHECK(agrees(measured[t].cosine, theory[t].cosine()));
  }
}

TEST_CASE("estimators: norms and angles of usual skip connections follow the maps (few networks)") {
  Parameters parameters;
  parameters.tokens = 8;
  parameters.alpha_A = parameters.alpha_M = 1;
  parameters.sigma_w = 2;
  parameters.skip_A = parameters.skip_M = 1;
  SampleOptions options;
  options.width = 128;
  options.networks = 24;
  const auto measured = measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.5), 5, options);
  const auto theory = BlockMap(parameters).trajectory(TokenState::from_cosine(1, 0.5), 5);
  CHECK(theory.back().q > 5);
  for (std::size_t t = 0; t < theory.size(); ++t) {
    CHECK(std::abs(measured[t].q.value - theory[t].q) <
          3 * measured[t].q.standard_error + 0.02 * theory[t].q);
    CHECK(std::abs(measured[t].cosine.value - theory[t].cosine()) <
          3 * measured[t].cosine.standard_error + 0.02);
  }
  const auto gradient =
      measured_gradient_exponent(parameters, TokenDistribution::equal(1), 5, options).log_of_mean;
  CHECK(std::abs(gradient.value - equal_token_growth(parameters, 1, 5).gradient) <
        3 * gradient.standard_error + 0.02);
}

TEST_CASE("estimators: exponents of finite networks (few networks)") {
  check_angles(cases[2], 16, sample(128, 40));
  check_modes(cases[4], 4, sample(128, 40));
  check_gradient(cases[1], 16, 8, sample(128, 30));
  check_gradient(cases[1], 16, 8, sample(128, 30, AttentionMask::causal));
}

TEST_CASE("estimators: the fixed-point norm belongs to each branch's own input") {
  // With q_star in the MLP factor the contrast mode would be -2.672 instead of -3.132.
  const MeasuredModes modes = measured_gradient_modes(parameters_of(cases[4], 256), 4, sample(128, 40));
  CHECK(std::abs(modes.contrast.value + 2.672) > 0.3);
}

TEST_CASE("estimators: modes combine to the exponent of any number of tokens") {
  const MeasuredModes modes{{-0.1, 0}, {0.3, 0}, 16};
  CHECK(modes.combined(64) == Approx(std::log(63.0 / 64 * std::exp(-1.6) + std::exp(4.8) / 64) / 16)
                                  .scale(0)
                                  .epsilon(1e-13)
                                  .scale(0));
}

TEST_CASE("estimators: two groups of tokens become alike (few networks)") {
  const double alpha = 1 / std::sqrt(8.0);
  const Parameters parameters = parameters_of({alpha, alpha, 2, OutputGain::unit()}, 32);
  const auto ratio =
      measured_group_ratio(parameters, TokenDistribution::two_groups(1, 0.75, 0.5), 8, sample(256, 12));
  // The ratio of two means that share their noise: its own bias falls with the width.
  CHECK(ratio[0].value == Approx(1.5).scale(0).epsilon(0.1));
  CHECK(ratio[8].value < ratio[4].value);
  CHECK(ratio[4].value < ratio[0].value);
  CHECK(ratio[8].value > 1);
}

TEST_CASE("estimators: standard errors of gradient exponents are their scatter over seeds") {
  const Parameters parameters = parameters_of({0.3, 0.3, 1, OutputGain::unit()}, 4);
  constexpr int repetitions = 120;
  std::vector<double> of_mean, of_log;
  double claimed_of_mean = 0, claimed_of_log = 0;
  SampleOptions options = sample(32, 40);
  for (int k = 0; k < repetitions; ++k) {
    options.seed = 100 + static_cast<std::uint64_t>(k);
    const MeasuredGradient measured =
        measured_gradient_exponent(parameters, TokenDistribution::equal(1), 3, options);
    of_mean.push_back(measured.log_of_mean.value);
    of_log.push_back(measured.mean_of_log.value);
    claimed_of_mean += measured.log_of_mean.standard_error / repetitions;
    claimed_of_log += measured.mean_of_log.standard_error / repetitions;
  }
  // The scatter of 120 estimates is known to 6.5 %.
  CHECK(claimed_of_mean / std::sqrt(numerics::variance(of_mean).value) == Approx(1).scale(0).epsilon(0.12));
  CHECK(claimed_of_log / std::sqrt(numerics::variance(of_log).value) == Approx(1).scale(0).epsilon(0.12));
}

TEST_CASE("estimators: single tokens and pairs") {
  const Parameters parameters = parameters_of(cases[0], 5);
  const auto samples = token_samples(parameters, TokenDistribution::gaussian(1, 0), {0, 2}, sample(16, 3));
  REQUIRE(samples.size() == 2);
  CHECK(samples[1].depth == 2);
  CHECK(samples[1].squared_norms.size() == 15);
  CHECK(samples[1].cosines.size() == 30);
  CHECK(
      numerics::mean(samples[1].squared_norms).value ==
      Approx(measured_trajectory(parameters, TokenDistribution::gaussian(1, 0), 2, sample(16, 3))[2].q.value)
          .scale(0)
          .epsilon(1e-12)
          .scale(0));
}

TEST_CASE("estimators: wrong arguments are named") {
  const Parameters parameters = parameters_of(cases[0], 4);
  CHECK_THROWS_WITH_AS((void)TokenDistribution::gaussian(0, 0.5),
                       "TokenDistribution::gaussian: q must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)TokenDistribution::gaussian(1, -0.1),
                       "TokenDistribution::gaussian: cosine must lie in [0, 1], got -0.1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)TokenDistribution::two_groups(1, 0.5, 0.75),
                       doctest::Contains("expected 0 <= p_across <= p_inside <= q"), ArgumentError);
  const TokenDistribution start = TokenDistribution::equal(1);
  CHECK_THROWS_WITH_AS((void)measured_trajectory(parameters, start, 0, sample(8, 4)),
                       "measured_trajectory: depth must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)measured_trajectory(parameters, start, 1, sample(8, 1)),
                       "measured_trajectory: networks must be at least 2, got 1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)measured_angle_exponent(parameters, 1, 1, sample(8, 4)),
                       "measured_angle_exponent: cosine must be below 1 for an angle to grow, got 1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)measured_gradient_modes(parameters, 2, sample(8, 4, AttentionMask::causal)),
                       "measured_gradient_modes: the mask must be full, got a causal one", ArgumentError);
  CHECK_THROWS_WITH_AS((void)token_samples(parameters, start, {}, sample(8, 4)),
                       "token_samples: depths must hold at least one, got none", ArgumentError);
  SampleOptions options = sample(8, 4);
  std::stop_source stop;
  stop.request_stop();
  options.stop = stop.get_token();
  CHECK_THROWS_AS((void)measured_trajectory(parameters, start, 1, options), Cancelled);
}

TEST_CASE("estimators: the note's angle exponents of one block [slow]") {
  for (const Case& given : cases) check_angles(given, 64, sample(256, 64));
}

TEST_CASE("estimators: the note's gradient modes [slow]") {
  for (const Case& given : cases) check_modes(given, 6, sample(256, 60));
}

TEST_CASE("estimators: the note's gradient exponents at finite depth [slow]") {
  for (const Case& given : cases) check_gradient(given, 64, 16, sample(128, 48));
}

TEST_CASE("estimators: the note's causal exponents [slow]") {
  for (int i = 0; i < 3; ++i) {
    check_gradient(cases[i], 64, 16, sample(128, 32, AttentionMask::causal));
    const Parameters parameters = parameters_of(cases[i], 64);
    const Estimate angle =
        measured_angle_exponent(parameters, 1, 0.99, sample(256, 64, AttentionMask::causal));
    MESSAGE("causal angle: ", angle.value, " +- ", angle.standard_error);
    CHECK(agrees(angle, one_block_exponent_limit(parameters, 1, AttentionMask::causal)));
  }
}

TEST_CASE("estimators: the note's exponents from uncorrelated tokens [slow]") {
  const Case open[] = {{0.5, 0.5, 2.25, OutputGain::unit()},
                       {0.7, 0.7, 1, OutputGain::unit()},
                       {0.3, 0.3, 3, OutputGain::unit()}};
  for (const Case& given : open) {
    const Parameters parameters = parameters_of(given, 64);
    const double theory = gradient_exponent_from(BlockMap(parameters), TokenState{1, 1}, 16);
    const MeasuredGradient measured =
        measured_gradient_exponent(parameters, TokenDistribution::gaussian(1, 0), 16, sample(256, 30));
    MESSAGE("uncorrelated (", given.alpha_A, ", ", given.sigma_w, "): ", measured.log_of_mean.value, " +- ",
            measured.log_of_mean.standard_error, ", theory ", theory);
    CHECK(agrees(measured.log_of_mean, theory));
    // The collapsed theory is far away.
    CHECK_FALSE(agrees(measured.log_of_mean, gradient_exponent(collapsed_point(parameters), 64, 16)));
  }
}

TEST_CASE("estimators: the linearisation at the fixed point, not one block, rules depth [slow]") {
  const Parameters parameters = parameters_of({0.9, 0.9, 3, OutputGain::shared()}, 64);
  CHECK(one_block_exponent(BlockMap(parameters), 1, 0.01) < -0.2);
  CHECK(collapsed_point(parameters).lambda_a() > 1);
  const auto measured =
      measured_trajectory(parameters, TokenDistribution::gaussian(1, 0.99), 12, sample(256, 30));
  const auto theory = BlockMap(parameters).trajectory(TokenState::from_cosine(1, 0.99), 12);
  const double growth = std::log((1 - measured[12].cosine.value) / (1 - measured[0].cosine.value));
  MESSAGE("ln e_12 / e_0 = ", growth, ", map ", std::log(theory[12].cosine_gap() / 0.01));
  CHECK(growth > 3);
  CHECK(growth == Approx(std::log(theory[12].cosine_gap() / 0.01)).scale(0).epsilon(0.05));
}
