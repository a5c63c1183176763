#include "widelimit/propagation/exponents.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "propagation/parameters_with.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/propagation/critical.hpp"
#include "widelimit/propagation/phase_diagram.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using widelimit::propagation_test::parameters_with;

namespace {

/// q_*, q_M; lambda_a; lambda_g(16); lambda_g(infinity).
struct TableRow {
  Parameters parameters;
  double q_star, q_M, lambda_a, lambda_g, infinite;
};

}  // namespace

TEST_CASE("exponents: the note's table") {
  const TableRow table[] = {
      {parameters_with(0.5, 0.5, 2.25), 0.77682580826, 0.8326193562, -0.072134598744, -0.026205467376,
       0.28217391613},
      {parameters_with(0.3, 0.3, 3), 0.84750617857, 0.8612306225, 0.097402272874, 0.094118200315,
       0.20332068948},
      {parameters_with(0.7, 0.7, 1), 0.4943380202, 0.7421123903, -0.64035480275, -0.28958466557,
       0.056988423045},
      {parameters_with(0.8, 0.4, 3), 0.93319651401, 0.97595074504, -0.53046393848, -0.036135583878,
       0.31043738699},
      {parameters_with(0.4, 0.8, 3), 0.73278605602, 0.77554028706, 1.2654460045, 0.82670267563, 1.0488311844},
      {parameters_with(0.5, 0.5, 2.25, 256, OutputGain::shared()), 2.1916092258, 1.8937069193, 0.37575396988,
       0.32107510518, 0.46058415589},
      {parameters_with(0.9, 0.9, 0.5, 64), 0.19329118668, 0.84672532547, -0.9563672998, -0.25396883108,
       0.0059613616255}};
  for (const TableRow& row : table) {
    const CollapsedPoint point = collapsed_point(row.parameters);
    CHECK(point.q_star == Approx(row.q_star).scale(0).epsilon(1e-10));
    CHECK(point.q_M == Approx(row.q_M).scale(0).epsilon(1e-9));
    CHECK(point.lambda_a() == Approx(row.lambda_a).scale(0).epsilon(1e-10));
    CHECK(gradient_exponent(point, static_cast<double>(row.parameters.tokens), 16) ==
          Approx(row.lambda_g).scale(0).epsilon(1e-10));
    CHECK(infinite_gradient_exponent(point) == Approx(row.infinite).scale(0).epsilon(1e-10));
  }
}

TEST_CASE("exponents: Jacobian, moments and estimates of the note's table") {
  const Parameters parameters = parameters_with(0.5, 0.5, 2.25);
  const CollapsedPoint point = collapsed_point(parameters);
  const Eigen::Matrix2d expected{{0.32207598713, 0.24042401287}, {-0.60578941413, 1.1682894141}};
  CHECK((collapsed_jacobian(parameters) - expected).cwiseAbs().maxCoeff() < 1e-10);
  const JacobianMoments moments = jacobian_moments(parameters, 64);
  CHECK(moments.x == Approx(0.5625).scale(0).epsilon(1e-14));
  CHECK(moments.y == Approx(0.00570883439462).scale(0).epsilon(1e-11));
  CHECK(moments.z == Approx(9.4924906035e-08).scale(0).epsilon(1e-10));
  CHECK(log_jacobian_norm(point, 256, 64, 16) == Approx(9.28477304982).scale(0).epsilon(1e-11));
  const BlockMap map(parameters);
  CHECK(one_block_exponent(map, 1, 0.01) == Approx(-0.0477385390255).scale(0).epsilon(1e-10));
  CHECK(one_block_exponent(map, point.q_star, 0.01) == Approx(-0.0821898242957).scale(0).epsilon(1e-10));
  const Parameters causal = parameters_with(0.5, 0.5, 2.25, 64);
  CHECK(causal_gradient_exponent(causal, 16) == Approx(0.233774277609).scale(0).epsilon(1e-10));
  CHECK(causal_angle_exponent(causal) == Approx(0.0274013795262).scale(0).epsilon(1e-10));
  Parameters critical = parameters_with(1 / std::sqrt(8.0), 1 / std::sqrt(8.0), 2.352482995);
  CHECK(critical_curvature(critical) == Approx(0.773644037084).scale(0).epsilon(1e-8));
}

TEST_CASE("exponents: identities of the closed form at random parameters") {
  numerics::RandomStream stream(11);
  for (int trial = 0; trial < 40; ++trial) {
    const Parameters parameters =
        parameters_with(0.95 * stream.uniform(), 0.05 + 0.9 * stream.uniform(), 0.2 + 3.8 * stream.uniform(),
                        2 + static_cast<Index>(stream.below(300)),
                        stream.uniform() < 0.5 ? OutputGain::unit() : OutputGain::shared());
    const CollapsedPoint point = collapsed_point(parameters);
    const double branch_M = parameters.alpha_M * parameters.alpha_M;
    const auto n = static_cast<double>(parameters.tokens);
    CHECK(point.m * point.a0 == Approx(1 + point.lambda_a()).scale(0).epsilon(1e-13));
    CHECK(point.m * point.a1 ==
          Approx(1 + branch_M * (point.f - point.k_out) / point.q_star).scale(0).epsilon(1e-12));
    CHECK(point.a1 / point.a0 == Approx(1 + point.r).scale(0).epsilon(1e-13));
    const double width = 64;
    const JacobianMoments moments = jacobian_moments(parameters, width);
    CHECK(moments.x + width * moments.y + width * n * n * moments.z ==
          Approx(point.m * point.a1).scale(0).epsilon(1e-12));
    CHECK(moments.x + width * moments.y == Approx(point.mu_delta).scale(0).epsilon(1e-12));
    // Three phases: a chaotic network never has vanishing gradients.
    CHECK(gradient_exponent(point, n, 16) >= point.lambda_a_log() - 1e-12);
    CHECK(point.f >= point.k_out);  // odd activation
    CHECK(infinite_gradient_exponent(point) >= -1e-12);
    // The mean carries 1 / n of the gradient at the start.
    CHECK(std::abs(gradient_exponent(point, n, 1e6) - infinite_gradient_exponent(point)) <=
          std::log(n) / 1e6 + 1e-12);
    CHECK(std::max(point.mu_q, point.mu_delta) == point.mu_delta);
  }
}

TEST_CASE("exponents: the fixed point is one, with the Jacobian of the map") {
  for (const Parameters& parameters :
       {parameters_with(0.8, 0.4, 3), parameters_with(0.4, 0.8, 3, 8, OutputGain::shared()),
        parameters_with(1, 0.5, 2), parameters_with(0, 0.5, 2)}) {
    const BlockMap map(parameters);
    const CollapsedPoint point = collapsed_point(parameters);
    const TokenState fixed{point.q_star, 0};
    CHECK(map.attention(fixed).q == Approx(point.q_M).scale(0).epsilon(1e-13));
    CHECK(map.block(fixed).q == Approx(point.q_star).scale(0).epsilon(1e-13));
    CHECK((in_norm_and_product(map.block_jacobian(fixed)) - collapsed_jacobian(parameters))
              .cwiseAbs()
              .maxCoeff() < 1e-12);
    const double gap = 1e-9 * point.q_star;
    CHECK(std::abs(map.block(TokenState{point.q_star, gap}).gap / gap - point.mu_delta) < 1e-7);
  }
}

TEST_CASE("exponents: what a published formula would say differs where q_M and q_star do") {
  CHECK(published_gradient_exponent(parameters_with(0.5, 0.5, 2.25), 16) ==
        Approx(0.001683515869652867).scale(0).epsilon(1e-9));
}

TEST_CASE("exponents: one block from q_star estimates ln mu, from 1 another number") {
  const Parameters parameters = parameters_with(0.9, 0.9, 0.5, 64);
  const CollapsedPoint point = collapsed_point(parameters);
  const BlockMap map(parameters);
  CHECK(one_block_exponent(map, point.q_star, 1e-9) == Approx(point.lambda_a_log()).scale(0).epsilon(1e-6));
  CHECK(one_block_exponent_limit(parameters, point.q_star) ==
        Approx(point.lambda_a_log()).scale(0).epsilon(1e-12));
  CHECK(one_block_exponent(map, 1, 1e-9) ==
        Approx(one_block_exponent_limit(parameters, 1)).scale(0).epsilon(1e-6));
  CHECK(std::abs(one_block_exponent_limit(parameters, 1) - point.lambda_a_log()) > 1);
}

TEST_CASE("exponents: causal angles of 16 blocks, and their way to infinite depth") {
  // Measured in 40 networks of width 192: +.075 and +.011 where infinite depth has -.110 and -.017.
  CHECK(std::abs(causal_angle_exponent(parameters_with(0.7, 0.7, 2.1, 64), 16) - 0.074) < 1e-3);
  CHECK(std::abs(causal_angle_exponent(parameters_with(0.5, 0.5, 2.1, 64), 16) - 0.008) < 1e-3);
  ExponentOptions options;
  options.mask = AttentionMask::causal;
  const double alphas[] = {0.1, 0.5, 0.7}, gains[] = {2.207, 2.070, 1.937};
  for (int i = 0; i < 3; ++i) {
    const auto gain = critical_value(Exponent::angle, Coordinate::sigma_w,
                                     parameters_with(alphas[i], alphas[i], 2, 64), options);
    REQUIRE(gain);
    CHECK(std::abs(*gain - gains[i]) < 1e-3);
  }
  // Thousands of blocks, where constants would drown what is left of a gap, come to the eigenvalue.
  const Parameters deep = parameters_with(0.7, 0.7, 2.1, 8);
  const double infinite = std::log1p(causal_angle_exponent(deep));
  const double far = causal_angle_exponent(deep, 4000), further = causal_angle_exponent(deep, 8000);
  CHECK(std::abs(further - infinite) < 1e-3);
  CHECK(std::abs(further - infinite) < 0.6 * std::abs(far - infinite));
}

TEST_CASE("exponents: causal masks, against powers of the averaging matrix") {
  const Index n = 7, depth = 5;
  const Parameters parameters = parameters_with(0.6, 0.5, 1.4, n);
  const CollapsedPoint point = collapsed_point(parameters);
  Matrix<double> averages = Matrix<double>::Zero(n, n);
  for (Index i = 0; i < n; ++i) averages.row(i).head(i + 1).setConstant(1 / static_cast<double>(i + 1));
  Matrix<double> g = Matrix<double>::Identity(n, n);
  for (Index t = 0; t < depth; ++t)
    g = point.m * (point.a0 * g + 0.36 / point.q_star * averages.transpose() * g * averages);
  CHECK(causal_gradient_exponent(parameters, depth) ==
        Approx(std::log(g.trace() / static_cast<double>(n)) / static_cast<double>(depth))
            .scale(0)
            .epsilon(1e-12)
            .scale(0));
  // The angle: distances of tokens, whose deviations start independent.
  Matrix<double> deviations = Matrix<double>::Identity(n, n);
  for (Index t = 0; t < depth; ++t)
    deviations = point.m *
                 (point.a0 * deviations + 0.36 / point.q_star * averages * deviations * averages.transpose());
  const double spread = deviations.trace() - deviations.mean() * static_cast<double>(n);
  CHECK(causal_angle_exponent(parameters, depth) ==
        Approx(std::log(spread / static_cast<double>(n - 1)) / static_cast<double>(depth))
            .scale(0)
            .epsilon(1e-12)
            .scale(0));
  CHECK(causal_gap_share(64) == Approx(0.0447).scale(0).epsilon(1e-2));
  CHECK(causal_gap_share(256) == Approx(0.0163).scale(0).epsilon(1e-2));
  // What is left of a gap: mean over pairs of |rows of M differ|^2 / 2.
  double share = 0;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j)
      share += (averages.row(i) - averages.row(j)).squaredNorm() / 2 / (static_cast<double>(n * (n - 1)) / 2);
  CHECK(causal_gap_share(n) == Approx(share).scale(0).epsilon(1e-12));
  // All attention: a0 = 0.
  CHECK(std::isfinite(causal_gradient_exponent(parameters_with(1, 0.5, 1.4, n), depth)));
}

TEST_CASE("exponents: on the critical line angles close as 1 / (kappa t)") {
  const double alpha = 1 / std::sqrt(8.0);
  const BlockMap map(parameters_with(alpha, alpha, 2.352482995));
  const double q = collapsed_point(map.parameters()).q_star;
  const auto states = map.trajectory(TokenState::from_cosine(q, 1 - 1e-3), 2000);
  const double rate = (1 / states.back().cosine_gap() - 1 / states.front().cosine_gap()) / 2000;
  CHECK(rate == Approx(0.7703).scale(0).epsilon(1e-4).scale(
                    0));  // the note's figure; kappa itself is the limit of small e
  CHECK(rate == Approx(critical_curvature(map.parameters())).scale(0).epsilon(0.006));
}

TEST_CASE("exponents: fixed points and their stability") {
  const double alpha = 1 / std::sqrt(8.0);
  const BlockMap chaotic(parameters_with(alpha, alpha, 5));
  const auto points = fixed_points(chaotic);
  REQUIRE(points.size() == 2);
  CHECK(points[0].stability == Stability::unstable);
  CHECK(points[0].state.q == Approx(0.9090).scale(0).epsilon(1e-4));
  CHECK(points[1].stability == Stability::stable);
  CHECK(points[1].state.q == Approx(0.76372073349).scale(0).epsilon(1e-8));
  CHECK(points[1].state.cosine() == Approx(0.686926857733).scale(0).epsilon(1e-8));
  CHECK(points[1].largest_eigenvalue < 1);
  const TokenState again = chaotic.block(points[1].state);
  CHECK(again.gap == Approx(points[1].state.gap).scale(0).epsilon(1e-12));
  const BlockMap ordered(parameters_with(alpha, alpha, 1));
  REQUIRE(fixed_points(ordered).size() == 1);
  CHECK(fixed_points(ordered)[0].stability == Stability::stable);
  CHECK_THROWS_WITH_AS((void)simplex_fixed_point(ordered),
                       doctest::Contains("simplex_fixed_point: exists only where lambda_a > 0"),
                       NumericalError);
}

TEST_CASE("exponents: the gradient from open angles, and its limit at equal tokens") {
  const BlockMap map(parameters_with(0.5, 0.5, 2.25, 64));
  CHECK(gradient_exponent_from(map, {1, 1}, 16) == Approx(0.27001843710688).scale(0).epsilon(1e-8));
  const CollapsedPoint point = collapsed_point(map.parameters());
  CHECK(gradient_exponent_from(map, {point.q_star, 0}, 16) ==
        Approx(gradient_exponent(point, 64, 16)).scale(0).epsilon(1e-12));
}

TEST_CASE("exponents: limits of large strengths") {
  const Parameters parameters = parameters_with(1, 0.7, 2);
  const CollapsedPoint point = collapsed_point(parameters);
  CHECK(point.lambda_a() == -1);
  CHECK(gradient_exponent(point, 256, 16) ==
        Approx(infinite_gradient_exponent(point) - std::log(256) / 16).scale(0).epsilon(1e-13));
  // alpha = 1: ln(f / k_out) - ln(n) / L
  const CollapsedPoint both = collapsed_point(parameters_with(1, 1, 2));
  CHECK(gradient_exponent(both, 256, 16) ==
        Approx(std::log(both.f / both.k_out) - std::log(256) / 16).scale(0).epsilon(1e-12));
}

TEST_CASE("exponents: parameters out of range are named") {
  const auto message = [](const Parameters& parameters, const char* text) {
    CHECK_THROWS_WITH_AS((void)collapsed_point(parameters), text, ArgumentError);
  };
  message(parameters_with(1.01, 0.5, 1), "collapsed_point: alpha_A must lie in [0, 1], got 1.01");
  message(parameters_with(0.5, 2, 1), "collapsed_point: alpha_M must lie in [0, 1], got 2");
  message(parameters_with(0.5, 0.5, -1), "collapsed_point: sigma_w must be at least 0 and finite, got -1");
  message(parameters_with(0.5, 0.5, 1, 1), "collapsed_point: tokens must be at least 2, got 1");
  Parameters parameters = parameters_with(0.5, 0.5, 1);
  parameters.sigma_A = -2;
  message(parameters, "collapsed_point: sigma_A must be at least 0 and finite, got -2");
  CHECK_THROWS_WITH_AS((void)collapsed_point(parameters_with(0, 0.5, 0)),
                       doctest::Contains("the fixed point of the norm must be positive"), ArgumentError);
  const CollapsedPoint point = collapsed_point(parameters_with(0.5, 0.5, 1));
  CHECK_THROWS_WITH_AS((void)gradient_exponent(point, 16, 0),
                       "gradient_exponent: depth must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)causal_gradient_exponent(parameters_with(0.5, 0.5, 1), 0),
                       "causal_gradient_exponent: depth must be at least 1, got 0", ArgumentError);
}

namespace {

Parameters with_skips(Parameters parameters, double skip_A, double skip_M) {
  parameters.skip_A = skip_A;
  parameters.skip_M = skip_M;
  return parameters;
}

}  // namespace

TEST_CASE("exponents: skip connections that follow from the strengths may as well be given") {
  const Parameters parameters = parameters_with(0.8, 0.4, 3, 24);
  const Parameters given = with_skips(parameters, 0.6, std::sqrt(1 - 0.16));
  const CollapsedPoint expected = collapsed_point(parameters), found = collapsed_point(given);
  for (const auto member :
       {&CollapsedPoint::q_star, &CollapsedPoint::q_M, &CollapsedPoint::m, &CollapsedPoint::a0,
        &CollapsedPoint::a1, &CollapsedPoint::r, &CollapsedPoint::mu_delta, &CollapsedPoint::mu_q})
    CHECK(found.*member == Approx(expected.*member).epsilon(1e-14).scale(0));
  CHECK((collapsed_jacobian(given) - collapsed_jacobian(parameters)).cwiseAbs().maxCoeff() < 1e-14);
  CHECK(critical_curvature(given) == Approx(critical_curvature(parameters)).epsilon(1e-13).scale(0));
  const TokenState start = TokenState::from_cosine(0.7, 0.4), block = BlockMap(given).block(start);
  CHECK(block.q == Approx(BlockMap(parameters).block(start).q).epsilon(1e-14).scale(0));
  CHECK(block.gap == Approx(BlockMap(parameters).block(start).gap).epsilon(1e-14).scale(0));
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal})
    CHECK(one_block_exponent_limit(given, 0.7, mask) ==
          Approx(one_block_exponent_limit(parameters, 0.7, mask)).epsilon(1e-13).scale(0));
}

TEST_CASE("exponents: growth from equal tokens is that of the fixed point there") {
  for (const Parameters& parameters :
       {parameters_with(0.5, 0.5, 2.25, 16), with_skips(parameters_with(0.5, 0.7, 2, 16), 1, 0.8)}) {
    const CollapsedPoint point = collapsed_point(parameters);
    const EqualTokenGrowth found = equal_token_growth(parameters, point.q_star, 12);
    CHECK(std::abs(found.norm) < 1e-14);
    CHECK(found.angle == Approx(point.lambda_a_log()).epsilon(1e-12).scale(0));
    CHECK(found.gradient == Approx(gradient_exponent(point, 16, 12)).epsilon(1e-12).scale(0));
    const EqualTokenGrowth causal = equal_token_growth(parameters, point.q_star, 12, AttentionMask::causal);
    CHECK(causal.angle == Approx(causal_angle_exponent(parameters, 12)).epsilon(1e-12).scale(0));
    CHECK(causal.gradient == Approx(causal_gradient_exponent(parameters, 12)).epsilon(1e-12).scale(0));
  }
}

TEST_CASE(
    "exponents: without a fixed point of the norm they are means over depth, and vanish where they are "
    "critical") {
  const Parameters usual = with_skips(parameters_with(1, 1, 2, 16), 1, 1);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(collapsed_point(usual)),
      "collapsed_point: norms have a fixed point only where the skip connections lose something: "
      "expected skip_A skip_M below 1, got 1",
      ArgumentError);
  CHECK(fixed_points(BlockMap(usual)).empty());
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    const ExponentOptions options{.depth = 10, .mask = mask};
    const EqualTokenGrowth growth = equal_token_growth(usual, 1, 10, mask);
    CHECK(std::log1p(exponent(Exponent::angle, usual, options)) ==
          Approx(growth.angle).epsilon(1e-13).scale(0));
    CHECK(exponent(Exponent::gradient, usual, options) == growth.gradient);
    const auto gain = critical_value(Exponent::angle, Coordinate::sigma_w, usual, options);
    REQUIRE(gain.has_value());
    Parameters critical = usual;
    critical.sigma_w = *gain;
    CHECK(std::abs(equal_token_growth(critical, 1, 10, mask).angle) < 1e-12);
  }
  CHECK_THROWS_AS(static_cast<void>(exponent(Exponent::angle, usual, {.formula = Formula::published})),
                  ArgumentError);
}

namespace {

/// equal_token_growth() of full attention in numbers of 80 bits, whose range is that of norms after all these blocks.
EqualTokenGrowth growth_in_long_double(const Parameters& parameters, Index depth) {
  const MlpStatistics mlp = mlp_statistics(parameters);
  const long double branch_A = parameters.alpha_A * parameters.alpha_A,
                    branch_M = parameters.alpha_M * parameters.alpha_M;
  const long double rest_A = *parameters.skip_A * *parameters.skip_A,
                    rest_M = *parameters.skip_M * *parameters.skip_M, f = mlp.f, k_out = mlp.k_out;
  const auto n = static_cast<long double>(parameters.tokens), blocks = static_cast<long double>(depth);
  long double q = 1, gap = 1, contrast = 1, mean = 1;
  for (Index t = 0; t < depth; ++t) {
    const long double q_M = rest_A * q + branch_A, m = rest_M + branch_M * f / q_M;
    gap *= rest_A * m;
    contrast *= rest_A * m;
    mean *= q_M / q * m;
    q = rest_M * q_M + branch_M * k_out;
  }
  return {static_cast<double>(std::log(q) / blocks), static_cast<double>(std::log(gap / q) / blocks),
          static_cast<double>(std::log((1 - 1 / n) * contrast + mean / n) / blocks)};
}

/// The same under a causal mask: covariances of tokens' gradients and deviations, token by token.
double causal_growth_in_long_double(const Parameters& parameters, Index depth, bool angle) {
  using Square = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
  const MlpStatistics mlp = mlp_statistics(parameters);
  const long double branch_A = parameters.alpha_A * parameters.alpha_A,
                    branch_M = parameters.alpha_M * parameters.alpha_M;
  const long double rest_A = *parameters.skip_A * *parameters.skip_A,
                    rest_M = *parameters.skip_M * *parameters.skip_M, f = mlp.f, k_out = mlp.k_out;
  const Index n = parameters.tokens;
  Square averages = Square::Zero(n, n), gram = Square::Identity(n, n);
  for (Index i = 0; i < n; ++i) averages.row(i).head(i + 1).setConstant(1 / static_cast<long double>(i + 1));
  const Square centre = Square::Identity(n, n) - Square::Constant(n, n, 1 / static_cast<long double>(n));
  if (angle) gram = centre;
  long double q = 1;
  for (Index t = 0; t < depth; ++t) {
    const long double q_M = rest_A * q + branch_A;
    gram = ((rest_M + branch_M * f / q_M) *
            (rest_A * gram + branch_A / q * averages * gram * averages.transpose()))
               .eval();
    // Averages of earlier tokens keep what all have in common, which has no angle.
    if (angle) gram = (centre * gram * centre).eval();
    q = rest_M * q_M + branch_M * k_out;
  }
  const long double start = angle ? static_cast<long double>(n - 1) : static_cast<long double>(n);
  const long double growth = std::log(gram.trace() / start) - (angle ? std::log(q) : 0);
  return static_cast<double>(growth / static_cast<long double>(depth));
}

}  // namespace

TEST_CASE("exponents: norms that leave the range of double leave the exponents as they are") {
  struct Deep {
    double skip_A, skip_M;
    Index depth;
  };
  for (const Deep& deep : {Deep{1.5, 1.5, 512}, Deep{1.1, 1.1, 2000}, Deep{2, 0.5, 1000}, Deep{1, 1, 2000},
                           Deep{3, 1.5, 700}, Deep{1.5, 1.5, 8}}) {
    const Parameters parameters = with_skips(parameters_with(0.5, 0.5, 2.25, 16), deep.skip_A, deep.skip_M);
    const EqualTokenGrowth found = equal_token_growth(parameters, 1, deep.depth),
                           expected = growth_in_long_double(parameters, deep.depth);
    // Sums of thousands of logarithms reach some 1500, whose rounding is 1e-13 of a mean over as many blocks.
    CHECK(std::abs(found.norm - expected.norm) < 2e-13);
    CHECK(std::abs(found.angle - expected.angle) < 2e-13);
    CHECK(std::abs(found.gradient - expected.gradient) < 2e-13);
    const ExponentOptions options{.depth = static_cast<double>(deep.depth)};
    CHECK(exponent(Exponent::gradient, parameters, options) == found.gradient);
    CHECK(std::isfinite(exponent(Exponent::angle, parameters, options)));
  }
  const Parameters growing = with_skips(parameters_with(0.5, 0.5, 1), 1.5, 1.5);
  CHECK(exponent(Exponent::gradient, growing, {.depth = 512}) == Approx(1.6219).epsilon(1e-4));
}

TEST_CASE("exponents: the same under a causal mask") {
  for (const auto& [skip, depth] : {std::pair{1.5, Index{512}}, {1.1, Index{900}}, {1.5, Index{6}}}) {
    const Parameters parameters = with_skips(parameters_with(0.6, 0.5, 2, 5), skip, skip);
    const EqualTokenGrowth found = equal_token_growth(parameters, 1, depth, AttentionMask::causal);
    CHECK(found.gradient ==
          Approx(causal_growth_in_long_double(parameters, depth, false)).epsilon(1e-12).scale(0));
    CHECK(found.angle ==
          Approx(causal_growth_in_long_double(parameters, depth, true)).epsilon(1e-9).scale(1e-4));
  }
}

TEST_CASE("exponents: an MLP whose numbers leave the range of double is an error that names its gains") {
  Parameters exponential = parameters_with(0.5, 0.5, 2);
  exponential.activation = activation_named("exp");
  Parameters deep = parameters_with(0.5, 0.5, 10, 256, OutputGain::shared());
  deep.mlp_depth = 2000;
  for (const Parameters& parameters : {exponential, deep, with_skips(exponential, 1, 1)}) {
    const auto message = [&](const auto& body) { return testing::error_message<NumericalError>(body); };
    const std::string named = fmt::format("lower sigma_w = {}", parameters.sigma_w);
    for (const Exponent which : {Exponent::angle, Exponent::gradient})
      CHECK(message([&] { return exponent(which, parameters, {}); }).find(named) != std::string::npos);
    CHECK(message([&] { return mlp_statistics(parameters).f; }).find(named) != std::string::npos);
    CHECK(message([&] { return one_block_exponent_limit(parameters, 1); }).find(named) != std::string::npos);
    CHECK(message([&] { return equal_token_growth(parameters, 1, 4).norm; }).find(named) !=
          std::string::npos);
    CHECK(message([&] { return BlockMap(parameters).mlp_map().statistics().f; }).find(named) !=
          std::string::npos);
  }
  // A search for critical gains passes such gains over.
  CHECK(critical_value(Exponent::angle, Coordinate::sigma_w, exponential, {}).has_value());
  // A diagram says nothing there.
  const PhaseDiagram diagram =
      phase_diagram(exponential, {Coordinate::alpha, {0.3, 0.6}}, {Coordinate::sigma_w, {0.5, 2, 4}});
  CHECK(diagram.lambda_a.row(0).allFinite());
  CHECK(diagram.lambda_a.bottomRows(2).array().isNaN().all());
  CHECK(diagram.lambda_g.bottomRows(2).array().isNaN().all());
}

TEST_CASE("block map: a norm that leaves the range of double names its block") {
  const Parameters growing = with_skips(parameters_with(0.5, 0.5, 1), 1.5, 1.5);
  CHECK(testing::error_message<NumericalError>([&] {
          return BlockMap(growing).trajectory(TokenState{1, 0.5}, 500);
        }) ==
        "BlockMap::trajectory: the squared norm after block 438 must be finite, but came out as inf: take "
        "fewer "
        "blocks, or factors of the skip connections below 1.5 and 1.5");
}
