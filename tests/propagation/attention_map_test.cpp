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
