#include "widelimit/propagation/critical.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/numerics/activations.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

Parameters at_strength(double alpha, OutputGain gain = OutputGain::unit(), Index tokens = 256) {
  Parameters parameters;
  parameters.alpha_A = parameters.alpha_M = alpha;
  parameters.tokens = tokens;
  parameters.sigma_out = gain;
  return parameters;
}

}  // namespace

TEST_CASE("critical: the note's table of contours, unit and shared gain") {
  struct Row {
    double alpha, unit_angle, one_block, unit_gradient, few_tokens, shared_angle, shared_gradient;
  };
  const Row table[] = {{0.1, 2.2476, 2.2444, 2.2441, 2.2333, 1.6245, 1.6232},
                       {0.3, 2.3184, 2.2885, 2.3081, 2.2780, 1.6507, 1.6480},
                       {0.5, 2.4937, 2.4045, 2.3413, 2.1243, 1.7131, 1.6972},
                       {0.7, 2.9040, 2.7095, 1.8553, 1.6390, 1.8476, 1.6061},
                       {0.9, 4.4531, 4.0921, 1.4484, 1.2865, 2.2624, 1.3638}};
  for (const Row& row : table) {
    const double digits = 1e-4;
    const Parameters unit = at_strength(row.alpha), shared = at_strength(row.alpha, OutputGain::shared());
    ExponentOptions one_block;
    one_block.angle = AngleMeasure::one_block;
    CHECK(std::abs(*critical_value(Exponent::angle, Coordinate::sigma_w, unit) - row.unit_angle) < digits);
    CHECK(std::abs(*critical_value(Exponent::angle, Coordinate::sigma_w, unit, one_block) - row.one_block) <
          digits);
    CHECK(std::abs(*critical_value(Exponent::gradient, Coordinate::sigma_w, unit) - row.unit_gradient) <
          digits);
    CHECK(std::abs(*critical_value(Exponent::gradient, Coordinate::sigma_w,
                                   at_strength(row.alpha, OutputGain::unit(), 64)) -
                   row.few_tokens) < digits);
    CHECK(std::abs(*critical_value(Exponent::angle, Coordinate::sigma_w, shared) - row.shared_angle) <
          digits);
    CHECK(std::abs(*critical_value(Exponent::gradient, Coordinate::sigma_w, shared) - row.shared_gradient) <
          digits);
  }
}

TEST_CASE("critical: values of the note's test table") {
  CHECK(*critical_value(Exponent::angle, Coordinate::sigma_w, at_strength(0.5)) ==
        Approx(2.49366696627).scale(0).epsilon(1e-11));
  CHECK(*critical_value(Exponent::gradient, Coordinate::sigma_w, at_strength(0.5)) ==
        Approx(2.34133037429).scale(0).epsilon(1e-11));
  const Parameters kink = gradient_kink(Coordinate::alpha, at_strength(0.5));
  CHECK(kink.alpha_A == Approx(0.495553891).scale(0).epsilon(1e-8));
  CHECK(kink.sigma_w == Approx(2.346120771).scale(0).epsilon(1e-8));
  CHECK(small_strength_gain(Exponent::angle, at_strength(0.5), 1) ==
        Approx(2.23940881402).scale(0).epsilon(1e-11));
  CHECK(small_strength_gain(Exponent::angle, at_strength(0.5, OutputGain::shared()), 1) ==
        Approx(1.62138424683).scale(0).epsilon(1e-11));
  const auto start = critical_initialisation(at_strength(0.5), 16);
  CHECK(start.parameters.alpha_A == Approx(0.3952067015).scale(0).epsilon(1e-9));
  CHECK(start.parameters.sigma_w == Approx(2.384662902).scale(0).epsilon(1e-9));
}

TEST_CASE("critical: at the kink both modes carry equal gradients") {
  const Parameters kink = gradient_kink(Coordinate::alpha, at_strength(0.5));
  Parameters parameters = at_strength(kink.alpha_A);
  parameters.sigma_w = kink.sigma_w;
  const CollapsedPoint point = collapsed_point(parameters);
  CHECK(std::abs(gradient_exponent(point, 256, 16)) < 1e-12);
  CHECK(255 * std::pow(point.mu_delta, 16) ==
        Approx(std::pow(point.m * point.a1, 16)).scale(0).epsilon(1e-9));
  parameters.sigma_w = 2;
  const Parameters strengths = gradient_kink(Coordinate::alpha_A, parameters);
  CHECK(strengths.alpha_A == Approx(0.4725689455).scale(0).epsilon(1e-8));
  CHECK(strengths.alpha_M == Approx(0.5819075770).scale(0).epsilon(1e-8));
  ExponentOptions published;
  published.formula = Formula::published;
  CHECK(gradient_kink(Coordinate::alpha, parameters, published).sigma_w ==
        Approx(2.2544095837).scale(0).epsilon(1e-8));
}

TEST_CASE("critical: the recipe's table over tokens and depth") {
  struct Row {
    Index tokens, depth;
    double alpha, sigma_w, shared_alpha, shared_sigma_w;
  };
  const Row table[] = {{65, 8, 0.4360, 2.4218, 0.5215, 1.7230},  {65, 16, 0.3148, 2.3271, 0.3737, 1.6685},
                       {65, 32, 0.2250, 2.2824, 0.2660, 1.6441}, {65, 64, 0.1599, 2.2607, 0.1887, 1.6326},
                       {256, 8, 0.5402, 2.5494, 0.6521, 1.8044}, {256, 64, 0.2027, 2.2741, 0.2395, 1.6397}};
  for (const Row& row : table) {
    const double digits = 1e-4;
    const auto unit = critical_initialisation(at_strength(0.5, OutputGain::unit(), row.tokens), row.depth);
    CHECK(std::abs(unit.parameters.alpha_A - row.alpha) < digits);
    CHECK(std::abs(unit.parameters.sigma_w - row.sigma_w) < digits);
    CHECK(std::abs(unit.lambda_a) < 1e-12);
    CHECK(unit.log_gradient_growth == Approx(0.1).scale(0).epsilon(1e-8));
    const auto shared =
        critical_initialisation(at_strength(0.5, OutputGain::shared(), row.tokens), row.depth);
    CHECK(std::abs(shared.parameters.alpha_A - row.shared_alpha) < digits);
    CHECK(std::abs(shared.parameters.sigma_w - row.shared_sigma_w) < digits);
  }
}

TEST_CASE("critical: growth that rises and falls along the line (GELU, SiLU)") {
  const auto start_of = [](const numerics::ActivationPtr& activation, Index depth, double tolerance) {
    Parameters parameters = at_strength(0.5, OutputGain::shared(), 128);
    parameters.activation = activation;
    return critical_initialisation(parameters, depth, FreeParameters::strengths_and_gain, tolerance);
  };
  // In 12 blocks gradients grow by e^.0085 at most: the given strengths do.
  const auto shallow = start_of(numerics::gelu(), 12, 0.1);
  CHECK(shallow.parameters.alpha_A == 0.5);
  CHECK(std::abs(shallow.parameters.sigma_w - 1.998) < 1e-3);
  CHECK(std::abs(shallow.lambda_a) < 1e-12);
  CHECK(shallow.log_gradient_growth < 0.1);
  // In 64 they grow by more between two strengths; the lower is the one up to which all are as good.
  const auto deep = start_of(numerics::gelu(), 64, 0.01);
  CHECK(std::abs(deep.parameters.alpha_A - 0.28) < 2e-3);
  CHECK(std::abs(deep.parameters.sigma_w - 1.917) < 1e-3);
  for (const auto& start :
       {deep, start_of(numerics::silu(), 64, 0.01), start_of(numerics::silu(), 64, 0.5)}) {
    CHECK(std::abs(start.lambda_a) < 1e-12);
    CHECK(std::abs(start.log_gradient_growth / 64 - start.lambda_g) < 1e-15);
  }
  CHECK(deep.log_gradient_growth == Approx(0.01).scale(0).epsilon(1e-8));
  CHECK(start_of(numerics::silu(), 64, 0.5).log_gradient_growth == Approx(0.5).scale(0).epsilon(1e-8));
}

TEST_CASE("critical: all values of a scan are critical") {
  Parameters parameters = at_strength(0.5);
  parameters.sigma_w = 2;
  for (const Exponent which : {Exponent::angle, Exponent::gradient})
    for (const Coordinate free : {Coordinate::alpha_A, Coordinate::alpha_M, Coordinate::sigma_w})
      for (const double root : critical_values(which, free, parameters)) {
        Parameters at = parameters;
        (free == Coordinate::alpha_A   ? at.alpha_A
         : free == Coordinate::alpha_M ? at.alpha_M
                                       : at.sigma_w) = root;
        CHECK(std::abs(exponent(which, at, {})) < 1e-12);
      }
  CHECK_THROWS_WITH_AS((void)critical_values(Exponent::angle, Coordinate::tokens, parameters),
                       "critical_values: expected sigma_w, alpha_A or alpha_M to be free, got tokens",
                       ArgumentError);
}

TEST_CASE("critical: a causal mask has a line of its own") {
  const Parameters parameters = at_strength(0.5, OutputGain::unit(), 64);
  const auto masked =
      critical_initialisation(parameters, 16, FreeParameters::gain, 0.1, AttentionMask::causal);
  CHECK(std::abs(masked.parameters.sigma_w - 2.070) < 1e-3);
  CHECK(std::abs(masked.lambda_a) < 1e-10);
  CHECK(masked.lambda_g == Approx(causal_gradient_exponent(masked.parameters, 16)).scale(0).epsilon(1e-12));
  const auto strongest =
      critical_initialisation(parameters, 16, FreeParameters::strengths_and_gain, 0.1, AttentionMask::causal);
  CHECK(std::abs(causal_angle_exponent(strongest.parameters, 16)) < 1e-10);
  CHECK(strongest.log_gradient_growth == Approx(0.1).scale(0).epsilon(1e-6));
}

TEST_CASE("critical: strengths keep their ratio") {
  Parameters parameters = at_strength(0.6);
  parameters.alpha_A = 0.3;
  const auto start = critical_initialisation(parameters, 16);
  CHECK(start.parameters.alpha_M == Approx(2 * start.parameters.alpha_A).scale(0).epsilon(1e-14));
  CHECK(std::abs(start.lambda_a) < 1e-12);
  CHECK(start.log_gradient_growth == Approx(0.1).scale(0).epsilon(1e-8));
}

TEST_CASE("critical: boundaries go to their limits as the strengths vanish") {
  for (const Exponent which : {Exponent::angle, Exponent::gradient})
    for (const double ratio : {0.5, 1.0}) {
      Parameters parameters = at_strength(2e-3, OutputGain::unit(), 8);
      parameters.alpha_A *= ratio;
      CHECK(*critical_value(which, Coordinate::sigma_w, parameters) ==
            Approx(small_strength_gain(which, parameters, ratio)).scale(0).epsilon(1e-5));
    }
}

TEST_CASE("critical: one free parameter") {
  Parameters parameters = at_strength(0.3);
  parameters.sigma_w = 2;
  CHECK(critical_initialisation(parameters, 16, FreeParameters::gain).parameters.sigma_w ==
        Approx(2.3184).scale(0).epsilon(1e-4));
  CHECK(critical_initialisation(parameters, 16, FreeParameters::mlp_strength).parameters.alpha_M ==
        Approx(0.36887776348).scale(0).epsilon(1e-10));
  parameters.alpha_M = 0.36887776347999224;
  CHECK(critical_initialisation(parameters, 16, FreeParameters::attention_strength).parameters.alpha_A ==
        Approx(0.3).scale(0).epsilon(1e-10));
}

TEST_CASE("critical: where lambda_a = 0 leaves the square there is no root") {
  Parameters parameters = at_strength(0.5);
  parameters.sigma_w = 2;
  const MlpStatistics mlp = mlp_statistics(parameters);
  const double last = std::sqrt((mlp.f - mlp.k_out) / (1 + mlp.f - mlp.k_out));
  CHECK(last == Approx(0.6488).scale(0).epsilon(1e-4));
  parameters.alpha_A = last - 1e-3;
  CHECK(critical_value(Exponent::angle, Coordinate::alpha_M, parameters).has_value());
  parameters.alpha_A = last + 1e-3;
  CHECK_FALSE(critical_value(Exponent::angle, Coordinate::alpha_M, parameters).has_value());
  CHECK_THROWS_WITH_AS((void)critical_initialisation(parameters, 16, FreeParameters::mlp_strength),
                       doctest::Contains("no alpha_M is critical"), NumericalError);
}

TEST_CASE("critical: between the boundaries both exponents balance") {
  const auto start = balanced_initialisation(at_strength(0.7), 16, 2, 0.5);
  CHECK(0.5 * start.lambda_g == Approx(-2 * start.lambda_a).scale(0).epsilon(1e-10));
  CHECK(start.lambda_a < 0);
  CHECK(start.parameters.sigma_w > 1.8553);
  CHECK(start.parameters.sigma_w < 2.9040);
}

TEST_CASE("critical: ReLU is never chaotic") {
  Parameters parameters = at_strength(0.5, OutputGain::shared());
  parameters.activation = numerics::relu();
  CHECK_FALSE(critical_value(Exponent::angle, Coordinate::sigma_w, parameters).has_value());
  CHECK_THROWS_WITH_AS((void)small_strength_gain(Exponent::angle, parameters, 1),
                       doctest::Contains("f - k_out does not reach 1"), NumericalError);
  CHECK_THROWS_AS((void)critical_initialisation(parameters, 16), NumericalError);
  CHECK_THROWS_AS((void)gradient_kink(Coordinate::alpha, parameters), NumericalError);
}

TEST_CASE("critical: wrong arguments are named") {
  CHECK_THROWS_WITH_AS((void)critical_initialisation(at_strength(0.5), 0),
                       "critical_initialisation: depth must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)critical_initialisation(at_strength(0.5), 8, FreeParameters::gain, -1),
                       "critical_initialisation: tolerance must be positive and finite, got -1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)balanced_initialisation(at_strength(0.5), 8, 0, 1),
                       "balanced_initialisation: weight_a must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)critical_value(Exponent::angle, Coordinate::sigma_w, at_strength(1.5)),
                       "critical_value: alpha_A must lie in [0, 1], got 1.5", ArgumentError);
  CHECK_THROWS_WITH_AS((void)critical_value(Exponent::angle, Coordinate::depth, at_strength(0.5)),
                       "critical_value: expected sigma_w, alpha_A or alpha_M to be free, got depth",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)gradient_kink(Coordinate::sigma_w, at_strength(0.5)),
                       "gradient_kink: expected alpha or alpha_A to rise, got sigma_w", ArgumentError);
}
