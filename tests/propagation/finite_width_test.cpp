#include "widelimit/propagation/finite_width.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "propagation/parameters_with.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/exponents.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using widelimit::propagation_test::parameters_with;

namespace {

struct Sampled {
  double mean = 0, variance = 0;
  double inside = 0;  ///< Share of networks in the interval.
};

Sampled sampled(const std::vector<double>& logs, double low, double high) {
  Sampled result;
  const auto count = static_cast<double>(logs.size());
  for (const double value : logs) {
    result.mean += value / count;
    result.inside += (value >= low && value <= high ? 1 : 0) / count;
  }
  for (const double value : logs)
    result.variance += (value - result.mean) * (value - result.mean) / (count - 1);
  return result;
}

/// ln of the squared gradient over that at the output, and ln of the growth of 1 - cosine, of one network each, over
/// blocks.
struct Growths {
  std::vector<double> gradient, angle;
};

Growths sampled_growths(const Parameters& parameters, Index width, Index depth, Index networks) {
  const double norm = equal_tokens_norm(parameters);
  const auto blocks = static_cast<double>(depth);
  Growths growths;
  for (Index network = 0; network < networks; ++network) {
    const auto stream = static_cast<std::uint64_t>(network);
    const FiniteTransformer transformer(parameters, width, depth, AttentionMask::full, 3, stream);
    const Matrix<double> equal = TokenDistribution::equal(norm).draw(parameters.tokens, width, 4, stream);
    numerics::RandomStream gaussian(5, stream);
    Matrix<double> output(parameters.tokens, width), near = equal;
    for (double& value : output.reshaped()) value = gaussian.normal();
    for (double& value : near.reshaped()) value += 1e-5 * gaussian.normal();
    const InputGradient gradient = transformer.input_gradient(transformer.traced_forward(equal), output);
    growths.gradient.push_back((2 * gradient.log_scale + std::log(gradient.direction.squaredNorm()) -
                                std::log(output.squaredNorm())) /
                               blocks);
    growths.angle.push_back(std::log(mean_cosine_gap(transformer.forward(near)) / mean_cosine_gap(near)) /
                            blocks);
  }
  return growths;
}

Parameters with_skip(Parameters parameters, double skip) {
  parameters.skip_A = parameters.skip_M = skip;
  return parameters;
}

Parameters with_activation(Parameters parameters, const char* name, int mlp_depth) {
  parameters.activation = activation_named(name);
  parameters.mlp_depth = mlp_depth;
  return parameters;
}

struct WidthCase {
  Parameters parameters;
  Index width, depth, networks;
};

void check_against_samples(const WidthCase& given) {
  CAPTURE(given.width);
  CAPTURE(given.depth);
  CAPTURE(given.parameters.alpha_A);
  const WidthSpread spread = width_spread(given.parameters, given.width, given.depth);
  const Growths growths = sampled_growths(given.parameters, given.width, given.depth, given.networks);
  const auto blocks = static_cast<double>(given.depth), count = static_cast<double>(given.networks);
  const auto check = [&](const std::vector<double>& logs, double variance, const ExponentInterval& interval) {
    const Sampled found = sampled(logs, interval.low, interval.high);
    // Four standard errors of a variance, and what the next order in depth / width may add.
    CHECK(found.variance * blocks * blocks ==
          Approx(variance).epsilon(4 * std::sqrt(2 / count) + 0.12).scale(0));
    CHECK(found.inside == Approx(0.9).epsilon(0.055).scale(0));
  };
  check(growths.gradient, spread.gradient_variance, spread.lambda_g);
  REQUIRE(spread.lambda_a_log.has_value());
  check(growths.angle, spread.angle_variance, *spread.lambda_a_log);
}

}  // namespace

TEST_CASE("finite width: variances and intervals are those of sampled networks") {
  for (const WidthCase& given :
       {WidthCase{parameters_with(0.5, 0.5, 2, 4), 32, 4, 1000},
        WidthCase{with_activation(parameters_with(0.7, 0.7, 2, 3), "relu", 2), 32, 4, 800}})
    check_against_samples(given);
}

TEST_CASE("finite width: variances and intervals of wider and deeper sampled networks [slow]") {
  for (const WidthCase& given :
       {WidthCase{parameters_with(0.5, 0.5, 2, 4), 128, 16, 300},
        WidthCase{parameters_with(0.3, 0.7, 3, 16), 64, 6, 400},
        WidthCase{parameters_with(0.9, 0.6, 1, 8), 64, 6, 600},
        WidthCase{with_activation(parameters_with(0.7, 0.7, 2, 3), "relu", 2), 64, 8, 600},
        WidthCase{with_activation(parameters_with(0.4, 0.9, 1.5, 2), "gelu", 1), 64, 8, 600},
        WidthCase{with_skip(parameters_with(1, 1, 2, 8), 1), 64, 12, 400}})
    check_against_samples(given);
}

TEST_CASE("finite width: wide networks are at the exponents, and variances fall as 1 / width") {
  for (const Parameters& parameters :
       {parameters_with(0.5, 0.6, 2, 16), with_skip(parameters_with(1, 1, 2, 16), 1)}) {
    const WidthSpread wide = width_spread(parameters, Index{1} << 40, 12),
                      wider = width_spread(parameters, Index{1} << 42, 12);
    const EqualTokenGrowth limit = equal_token_growth(parameters, equal_tokens_norm(parameters), 12);
    CHECK(wide.gradient_variance == Approx(4 * wider.gradient_variance).epsilon(1e-9).scale(0));
    CHECK(wide.angle_variance == Approx(4 * wider.angle_variance).epsilon(1e-9).scale(0));
    CHECK((wide.lambda_g.low + wide.lambda_g.high) / 2 == Approx(limit.gradient).epsilon(1e-9).scale(0));
    CHECK((wide.lambda_a_log->low + wide.lambda_a_log->high) / 2 ==
          Approx(limit.angle).epsilon(1e-9).scale(0));
  }
}

TEST_CASE("finite width: one linear layer of all attention has the variance of a chi squared") {
  // Without an MLP and skip connections, the mean's gradient is a Gaussian matrix times a vector: 2 / width a block,
  // from squared norms, and the shared norm, which has one block less.
  Parameters parameters = parameters_with(1, 0, 1, 2);
  for (const Index depth : {1, 2, 5}) {
    const WidthSpread spread = width_spread(parameters, 1000, depth);
    CHECK(spread.gradient_variance ==
          Approx((2 * static_cast<double>(depth) + 2 * static_cast<double>(depth - 1)) / 1000)
              .epsilon(1e-12)
              .scale(0));
    CHECK_FALSE(spread.lambda_a_log.has_value());
  }
}

TEST_CASE("finite width: the depth of the limit is the last before a variance of 1") {
  for (const Index width : {16, 64, 300}) {
    const Parameters parameters = parameters_with(0.5, 0.5, 2, 8);
    const auto found = limit_depth(parameters, width);
    REQUIRE(found.has_value());
    const auto largest = [&](Index depth) {
      const WidthSpread spread = width_spread(parameters, width, depth);
      return std::max(spread.gradient_variance, spread.angle_variance);
    };
    CHECK(*found >= 1);
    CHECK(largest(*found) <= 1);
    CHECK(largest(*found + 1) > 1);
  }
  // A wider network may be as much deeper, up to what is left of its start.
  const auto narrow = limit_depth(parameters_with(0.5, 0.5, 2, 8), 256),
             wide = limit_depth(parameters_with(0.5, 0.5, 2, 8), 1024);
  CHECK(static_cast<double>(*wide) == Approx(4.0 * static_cast<double>(*narrow)).epsilon(0.1));
  CHECK(limit_depth(parameters_with(1, 1, 3, 8), 2) == 0);
  CHECK_FALSE(limit_depth(parameters_with(1e-3, 1e-3, 1, 8), 1 << 16).has_value());
}

TEST_CASE("finite width: what has no scatter is named") {
  const auto message = [](const Parameters& parameters, Index width, Index depth) {
    return testing::error_message<Error>(
        [&] { return width_spread(parameters, width, depth).gradient_variance; });
  };
  const Parameters parameters = parameters_with(0.5, 0.5, 2);
  CHECK(message(parameters, 1, 4) == "width_spread: width must be at least 2, got 1");
  CHECK(message(parameters, 8, 0) == "width_spread: depth must be at least 1, got 0");
  CHECK(message(parameters_with(0.5, 2, 1), 8, 4) == "width_spread: alpha_M must lie in [0, 1], got 2");
  // Gain 0: the MLP of all of the block passes no gradient.
  Parameters constant = parameters_with(0.5, 1, 0);
  constant.activation = activation_named("exp");
  CHECK(message(constant, 8, 4).find("must be finite") != std::string::npos);
  CHECK(width_spread(parameters_with(0.5, 0.5, 0), 64, 8).gradient_variance > 0);
}
