#include "widelimit/specialization/trained_heads.hpp"

#include <doctest/doctest.h>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/bayes.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

TEST_CASE("specialisation time: strict threshold, first crossing, never") {
  std::vector<Matrix<double>> m;
  for (const double split : {0.1, 0.2, 0.25, 0.1, 0.9}) {
    Matrix<double> now = Matrix<double>::Zero(3, 2);
    now(1, 1) = split;
    m.push_back(now);
  }
  const std::vector<double> tau = {0, 1, 2, 3, 4};
  CHECK(specialisation_time(tau, m, 0.2).value() == 2);
  CHECK(specialisation_time(tau, m, 0.5).value() == 4);
  CHECK_FALSE(specialisation_time(tau, m, 1).has_value());
  CHECK_FALSE(feature_specialisation_time(tau, m, 0, 0.01).has_value());
  // |m_{:1} - mean| = split sqrt(2/3).
  CHECK(feature_specialisation_time(tau, m, 1, 0.9 * std::sqrt(2.0 / 3) - 1e-9).value() == 4);
  CHECK_FALSE(feature_specialisation_time(tau, m, 1, 0.9 * std::sqrt(2.0 / 3) + 1e-9).has_value());
  CHECK(max_split(Matrix<double>::Ones(1, 3)) == 0);
  CHECK(message_of([&] {
          (void)specialisation_time({0, 1}, m);
        }) == "specialisation_time: tau has 2 entries and m 5");
  CHECK(message_of([&] { (void)specialisation_time(tau, m, -1); }) ==
        "specialisation_time: delta must be >= 0, got -1");
}

TEST_CASE("attention: maps sum to the weights of the tokens, masses are their means") {
  numerics::RandomStream random(1);
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 3, 2, random);
    const SampleValues values = random_values(7, 4, 2, 3, random);
    double relevant = 0, other = 0;
    for (Index i = 0; i < 7; ++i) {
      const Matrix<double> chi_star = Eigen::Map<const Matrix<double>>(values.chi_star.data() + i * 8, 4, 2);
      const Matrix<double> xi = Eigen::Map<const Matrix<double>>(values.xi.data() + i * 12, 4, 3);
      const Matrix<double> map = attention_map(activation, at, chi_star, xi);
      const Index eps = values.eps[static_cast<std::size_t>(i)];
      relevant += map.col(eps).sum() / 7;
      other += (map.sum() - map.col(eps).sum()) / 7;
    }
    const AttentionMass mass = attention_mass(activation, at, SampleSet<double>(values));
    CHECK(mass.relevant == doctest::Approx(relevant));
    CHECK(mass.other == doctest::Approx(other));
  }
}

TEST_CASE("pruning: superfluous heads go first and cost nothing") {
  const Prior prior = Prior::spikes(3, 6);
  // Two heads a point, as bayes_optimal_heads lays them out: h and h + 3 are copies.
  const HeadParameters heads = bayes_optimal_heads(prior, 6);
  const auto samples = SampleSet<float>::draw(prior, {5, 6, 20'000}, 1);
  const PruneResult result = greedy_prune(HeadActivation::bayes, heads, samples);
  REQUIRE(result.losses.size() == 6);
  REQUIRE(result.removed.size() == 5);
  // Removing one copy leaves all points covered, with a wrong weight; beyond three heads points are lost.
  CHECK(result.losses[3] == doctest::Approx(result.losses[0]).scale(0).epsilon(1e-5));
  CHECK(result.losses[4] > result.losses[3] + 0.1);
  CHECK(result.losses[5] > result.losses[4] + 0.1);
  std::vector<Index> points;
  for (std::size_t i = 0; i < 3; ++i) points.push_back(result.removed[i] % 3);
  std::sort(points.begin(), points.end());
  CHECK(points == std::vector<Index>{0, 1, 2});
}

TEST_CASE("pruning: greedy choice, normalisers, ties") {
  numerics::RandomStream random(2);
  const auto samples = SampleSet<double>::draw(Prior::flip2(2, 2), {4, 4, 500}, 3);
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 4, 2, random);
    const PruneResult kept = greedy_prune(activation, at, samples, PruneNormaliser::kept_heads);
    const PruneResult full = greedy_prune(activation, at, samples, PruneNormaliser::full_model);
    CHECK(kept.losses[0] == doctest::Approx(full.losses[0]));
    const double difference = std::abs(kept.losses[3] - full.losses[3]);
    if (activation == HeadActivation::bayes) {
      CHECK(difference > 1e-3);
    } else {
      CHECK(difference < 1e-12);
      CHECK(kept.removed == full.removed);
    }
  }
  const HeadParameters equal =
      with_initial_offsets(HeadActivation::softmax, Matrix<double>::Ones(3, 2), Matrix<double>::Zero(3, 4));
  CHECK(greedy_prune(HeadActivation::softmax, equal, samples).removed == std::vector<Index>{0, 1});
}
