#include "widelimit/covariance_sde/model.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

TEST_CASE("models: the table of weights, stacking and finite-width drift") {
  const double gamma2 = 0.3, tau2 = 0.49;
  const ResidualWeights residual = ResidualWeights::shaped(gamma2);
  const SdeModel model = transformer_model(residual, 0.7, {0.5, -0.75});
  CHECK(model.relu_drift == gamma2);
  CHECK(model.attention_drift == Approx(gamma2 / tau2));
  CHECK(model.linear_noise == Approx(gamma2 * (4 - gamma2)));
  CHECK(model.attention_noise == Approx(gamma2 * gamma2 / tau2));
  CHECK(resnet_model(residual, {}).linear_noise == Approx(2 * gamma2));
  CHECK(resnet_model(residual, {}, 4).linear_noise == Approx(gamma2 * (2 - 0.75 * gamma2)));
  CHECK(attention_model(residual, 1).linear_noise == Approx(gamma2 * (2 - gamma2)));
  CHECK(mlp_model({}).linear_noise == 1);
  // c = 2 / (1 + (1 - 1 / sqrt(300))^2), the 1.059 of the note.
  CHECK(with_finite_width_drift(mlp_model({0, -1}), 300).relu_drift == Approx(1.0593).scale(0).epsilon(1e-4));
  CHECK(with_finite_width_drift(mlp_model({1, -1}), 10'000).relu_drift == Approx(1).scale(0).epsilon(1e-3));
}

TEST_CASE("models: wrong residual weights, slopes and temperatures are named") {
  CHECK(ResidualWeights::from(0.6, 0.8).gamma_squared() == Approx(0.64));
  CHECK_THROWS_WITH_AS(
      (void)ResidualWeights::from(1, 0.5),
      "ResidualWeights: lambda and gamma must be at least 0 with lambda^2 + gamma^2 = 1, got lambda = 1, "
      "gamma = 0.5, sum of squares 1.25",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)ResidualWeights::shaped(1.5),
                       "ResidualWeights: gamma^2 must lie in [0, 1] because lambda^2 + gamma^2 = 1, got 1.5",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)resnet_model(ResidualWeights::unit(), {}),
                       "resnet_model: lambda^2 + gamma^2 must be 1, got lambda = gamma = 1; with other "
                       "weights the drift is of "
                       "order one a layer and no SDE exists",
                       ArgumentError);
  const ResidualWeights residual = ResidualWeights::shaped(0.5);
  CHECK_THROWS_WITH_AS((void)attention_model(residual, 0),
                       "attention_model: temperature must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)attention_model(residual, -1),
                       "attention_model: temperature must be positive and finite, got -1", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)stack(mlp_model({0, -1}), mlp_model({0, -2})),
      "stack: both models have a ReLU drift and must share its slopes, got (0, -1) and (0, -2)",
      ArgumentError);
  CHECK_THROWS_AS(
      (void)stack(attention_model(residual, 1), attention_model(residual, 1, AttentionMask::causal)),
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)mlp_model({NAN, 0}), "mlp_model: c_plus must be finite, got nan", ArgumentError);
  CHECK_THROWS_WITH_AS((void)shaped_slopes({}, 0), "shaped_slopes: width must be at least 1, got 0",
                       ArgumentError);
}
