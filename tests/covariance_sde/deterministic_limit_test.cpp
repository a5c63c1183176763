#include "widelimit/covariance_sde/deterministic_limit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "covariance_sde/example_covariances.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

TEST_CASE("deterministic limits: drift flow and the commuting limit") {
  // Slopes with (c_+ - c_-)^2 / (2 pi) = 1 / pi turn the shaped drift into the unshaped one.
  const SdeModel bend = mlp_model({0, -std::numbers::sqrt2});
  const Matrix<double> flowed = drift_flow(bend, examples::c(), 0.7);
  const Matrix<double> commuting = commuting_limit(examples::c(), 0.7, Shortcut::variance_preserving);
  CHECK((flowed - commuting).cwiseAbs().maxCoeff() < 1e-9);
  CHECK((commuting_limit(examples::c(), 0.7, Shortcut::unit) - std::exp(0.7) * commuting)
            .cwiseAbs()
            .maxCoeff() < 1e-12);
  CHECK(commuting_limit(examples::two_tokens(1), 3, Shortcut::variance_preserving)(0, 1) == 1);
  CHECK(commuting_limit(examples::two_tokens(), 1, Shortcut::unit)(0, 1) ==
        Approx(0.3839566908 * std::numbers::e).scale(0).epsilon(1e-9));
  CHECK(drift_flow(bend, examples::c(), 0) == examples::c());
  const SdeModel attention = attention_model(ResidualWeights::shaped(0.5), 1);
  // Two tokens: Delta' = a Delta^3, so Delta = (Delta_0^-2 - 2 a t)^(-1/2).
  const Matrix<double> end = drift_flow(attention, examples::two_tokens(), 2);
  CHECK((end(0, 0) - end(0, 1)) / 2 == Approx(1 / std::sqrt(1 / 0.16 - 2)).scale(0).epsilon(1e-8));
  CHECK_THROWS_WITH_AS((void)drift_flow(attention, examples::two_tokens(), -1),
                       "drift_flow: time must be at least 0 and finite, got -1", ArgumentError);
  CHECK_THROWS_AS((void)drift_flow(attention, examples::two_tokens(), 7), NumericalError);
}
