#include "widelimit/propagation/attention_map.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

namespace {

/// E sum_j A_ij^2 of one query whose scores of orthogonal keys are independent with variance sigma_A^2: the
/// squared norm of the attention output at a gap of 1, without annealing.
double sampled_norm(int tokens, double sigma_A, int samples) {
  numerics::RandomStream random(7);
  std::vector<double> weights(static_cast<std::size_t>(tokens));
  double mean = 0;
  for (int sample = 0; sample < samples; ++sample) {
    double sum = 0, squares = 0;
    for (double& weight : weights) {
      weight = std::exp(sigma_A * random.normal());
      sum += weight;
      squares += weight * weight;
    }
    mean += squares / (sum * sum) / samples;
  }
  return mean;
}

}  // namespace

TEST_CASE("attention_core: sharp scores have the limit of every token attending to another alone") {
  for (const double sigma_A : {27.0, 100.0, 1e6}) {
    const TokenState orthogonal = attention_core(256, sigma_A, 1);
    CHECK(orthogonal.q == doctest::Approx(1));
    CHECK(orthogonal.p() == doctest::Approx(1 / 256.0));
  }
  // Tokens of negative cosine, whose weights grow with the scores.
  CHECK(attention_core(2, 100, 1.5).q == doctest::Approx(1));
  CHECK(attention_core(2, 100, 1.5).gap == doctest::Approx(1.5));
}

TEST_CASE("attention_outputs: sharp scores stay finite for both masks, and blunt ones are what they were") {
  Matrix<double> cosines(3, 3);
  cosines << 1, -0.4, 0.2, -0.4, 1, -0.3, 0.2, -0.3, 1;
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    for (const double sigma_A : {30.0, 60.0}) {
      const Matrix<double> sharp = attention_outputs(cosines, sigma_A, mask);
      CHECK(sharp.allFinite());
      CHECK(sharp(2, 2) == doctest::Approx(1));
      // Queries of cosine -0.4 choose keys that are as far apart as there are among theirs.
      CHECK(sharp(1, 0) == doctest::Approx(-0.4));
    }
    // Both forms of the sums, at either side of the change.
    const Matrix<double> below = attention_outputs(cosines, std::sqrt(299.9), mask),
                         above = attention_outputs(cosines, std::sqrt(300.1), mask);
    CHECK((below - above).cwiseAbs().maxCoeff() < 1e-3);
  }
}

TEST_CASE("largest_annealed_gap: softmax averages are annealed ones up to there, and far off beyond") {
  const auto excess = [](double sigma_A) {
    return attention_core(256, sigma_A, 1).q / sampled_norm(256, sigma_A, 20'000);
  };
  CHECK(largest_annealed_gap(256, 1) > 1);
  CHECK(std::abs(excess(1) - 1) < 0.03);
  CHECK(largest_annealed_gap(256, 2) < 1);
  CHECK(excess(2) > 2);
  CHECK(largest_annealed_gap(16, 4) == doctest::Approx(0.0866434).epsilon(1e-6));
  CHECK(largest_annealed_gap(16, 0) == HUGE_VAL);
  CHECK_THROWS_WITH_AS((void)largest_annealed_gap(1, 1),
                       "largest_annealed_gap: tokens must be at least 2, got 1", ArgumentError);
}
