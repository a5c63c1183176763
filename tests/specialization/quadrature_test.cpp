#include "widelimit/specialization/quadrature.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

TEST_CASE("quadrature: agrees with samples, and includes the noise directions") {
  const Prior prior = Prior::gaussian(linear_variances(1, 2, 2));
  numerics::RandomStream random(6);
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 1, 1, random);
    const auto samples = SampleSet<float>::draw(prior, {2, 1, 200'000}, 6);
    const SampledLoss sampled = sampled_loss(activation, at, samples);
    const SampledLoss exact = loss_by_quadrature(activation, at, prior, 2, {31, 7.5});
    CHECK(std::abs(sampled.loss - exact.loss) < 4 * sampled.standard_error);
    // Entries of G chi* are below 2 in size.
    CHECK(distance(sampled.gradient.r, exact.gradient.r) < 4 * 2 / std::sqrt(200'000.0));
  }
}

TEST_CASE("quadrature: more nodes than anyone waits for are refused") {
  const Prior prior = Prior::flip2(2, 2);
  CHECK(message_of([&] { (void)bayes_risk_by_quadrature(prior, 9); }).find("use samples instead") !=
        std::string::npos);
}
