#include "widelimit/covariance_sde/explosion.hpp"

#include <doctest/doctest.h>

#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/simulate.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

namespace {

Matrix<double> tokens_of_gap(double gap) {
  Matrix<double> v = Matrix<double>::Identity(2, 2);
  v(0, 1) = v(1, 0) = 1 - 2 * gap;
  return v;
}

}  // namespace

TEST_CASE("explosion: the gap decides for two tokens under full attention alone") {
  CHECK(gap_of(tokens_of_gap(0.4)) == doctest::Approx(0.4));
  const SdeModel attention = attention_model(ResidualWeights::shaped(0.25), 1);
  CHECK(has_gap(attention, tokens_of_gap(0.4)));
  CHECK_FALSE(has_gap(attention, tokens_of_gap(0)));
  CHECK_FALSE(has_gap(attention, Matrix<double>::Identity(3, 3)));
  CHECK_FALSE(
      has_gap(attention_model(ResidualWeights::shaped(0.25), 1, AttentionMask::causal), tokens_of_gap(0.4)));
  CHECK_FALSE(has_gap(mlp_model({0, -1}), tokens_of_gap(0.4)));
}

TEST_CASE("explosion: shares are counted by time, times the probability to explode from there") {
  const SdeModel model = attention_model(ResidualWeights::shaped(0.25), 1);
  const Matrix<double> v0 = tokens_of_gap(0.4);
  CovarianceEnsemble ensemble(2, 100, {1, 2});
  for (Index path = 0; path < 100; ++path)
    for (Index time = 0; time < 2; ++time) ensemble.set_covariance(time, path, v0);
  for (Index path = 0; path < 30; ++path) {
    ensemble.outcome(path) = {PathEnd::above, path < 10 ? 0.5 : 1.5, 0.4, 0};
    ensemble.set_covariance(1, path, 1e6 * v0);
  }
  ensemble.outcome(40) = {PathEnd::below, 0.5, 0.4, 0};
  const double from_there = explosion_probability(model, 0.4e6);
  const auto shares = explosion_shares(model, v0, ensemble);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].beyond_upper == 10);
  CHECK(shares[1].beyond_upper == 30);
  CHECK(shares[1].explodes_from_there == doctest::Approx(from_there));
  CHECK(shares[1].probability == doctest::Approx(0.3 * from_there));
  CHECK(shares[1].interval.lower < shares[1].probability);
  CHECK(shares[1].interval.upper > shares[1].probability);
  // What is not known is an upper bound.
  const SdeModel causal = attention_model(ResidualWeights::shaped(0.25), 1, AttentionMask::causal);
  CHECK(explosion_shares(causal, v0, ensemble)[1].probability == doctest::Approx(0.3));
}

TEST_CASE("explosion: shares of simulated paths are those of the exact law") {
  const SdeModel model = attention_model(ResidualWeights::shaped(0.25), 1);
  const Matrix<double> v0 = tokens_of_gap(0.9);
  SimulationOptions options;
  options.times = {0.5, 1};
  options.step_control = 0.005;
  options.bounds.upper = 1e6;
  options.paths = 2048;
  for (const ExplosionShare& share : explosion_shares(model, v0, simulate(model, v0, options))) {
    const double exact = 1 - gap_distribution(model, 0.9, share.time).total_mass();
    const double width = share.interval.upper - share.interval.lower;
    CHECK(exact > share.interval.lower - width / 2);
    CHECK(exact < share.interval.upper + width / 2);
  }
}
