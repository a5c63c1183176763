#include "widelimit/specialization/prior.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

Vector<double> vector_of(std::initializer_list<double> values) {
  Vector<double> vector(static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), vector.begin());
  return vector;
}

std::vector<Prior> some_priors() {
  Matrix<double> points(3, 2);
  points << 1, .5, -.4, 2, 0, -1.5;
  return {Prior::flip2(2, 3), Prior::spikes(3, 4), Prior::gaussian(vector_of({4, 1})),
          Prior::discrete(points, vector_of({.5, .2, .3}))};
}

}  // namespace

TEST_CASE("prior: draws have the stated mean and covariance") {
  constexpr int n = 200'000;
  std::uint64_t seed = 1;
  for (const Prior& prior : some_priors()) {
    numerics::RandomStream random(seed++);
    Vector<double> theta, sum = Vector<double>::Zero(prior.features());
    Matrix<double> square = Matrix<double>::Zero(prior.features(), prior.features());
    for (int i = 0; i < n; ++i) {
      prior.sample(random, theta);
      sum += theta;
      square += theta * theta.transpose();
    }
    const Vector<double> mean = sum / n;
    const Matrix<double> covariance = square / n - mean * mean.transpose();
    // Five standard errors of the entry that fluctuates most: E theta^4 <= 3 * 4^2.
    CHECK(distance(mean, prior.mean()) < 5 * std::sqrt(4.0 / n));
    CHECK(distance(covariance, prior.covariance()) < 5 * std::sqrt(48.0 / n));
  }
}

TEST_CASE("prior: named priors are what their names say") {
  const Prior flip = Prior::flip2(2, 3);
  CHECK(distance(flip.mean(), vector_of({std::sqrt(2.0), 0})) < 1e-15);
  CHECK(flip.covariance()(1, 1) == doctest::Approx(3));
  CHECK(std::abs(flip.covariance()(0, 0)) < 1e-15);
  const Prior spikes = Prior::spikes(4, 10);
  CHECK(spikes.covariance()(0, 0) == doctest::Approx(10 * (0.25 - 1.0 / 16)));
  CHECK(spikes.covariance()(0, 3) == doctest::Approx(-10.0 / 16));
  CHECK(distance(linear_variances(3, 20, 1), vector_of({20, 10.5, 1})) < 1e-14);
  CHECK(linear_variances(1, 4, 2)[0] == 4);
}

TEST_CASE("prior: symmetric features") {
  CHECK_FALSE(Prior::flip2(2, 3).symmetric_in(0));
  CHECK(Prior::flip2(2, 3).symmetric_in(1));
  CHECK(Prior::gaussian(vector_of({4, 1})).symmetric_in(1));
  CHECK_FALSE(Prior::spikes(3, 4).symmetric_in(2));
  CHECK_THROWS_WITH_AS((void)Prior::flip2(2, 3).symmetric_in(2), "prior: feature must lie in [0, 2), got 2",
                       ArgumentError);
}

TEST_CASE("prior: token score is ln E exp(theta chi - |theta|^2 / 2), by sampling theta") {
  constexpr int n = 400'000;
  const Vector<double> chi2 = vector_of({0.3, -0.4}), chi3 = vector_of({0.3, -0.4, 0.6});
  Matrix<double> gram = Matrix<double>::Identity(3, 3);
  gram(0, 1) = gram(1, 0) = 0.2;
  gram(2, 2) = 1.3;
  std::uint64_t seed = 10;
  for (const Prior& prior : some_priors()) {
    const Index F = prior.features();
    const Vector<double>& chi = F == 2 ? chi2 : chi3;
    const Matrix<double> p = gram.bottomRightCorner(F, F);
    numerics::RandomStream random(seed++);
    Vector<double> theta;
    double limit = 0, limit_square = 0, exact = 0;
    for (int i = 0; i < n; ++i) {
      prior.sample(random, theta);
      const double odds = std::exp(theta.dot(chi) - theta.squaredNorm() / 2);
      limit += odds;
      limit_square += odds * odds;
      exact += std::exp(theta.dot(chi) - theta.dot(p * theta) / 2);
    }
    limit /= n;
    const double deviation = std::sqrt(limit_square / n - limit * limit);
    const double tolerance = 5 * deviation / (limit * std::sqrt(n));
    CHECK(std::abs(prior.token_score(chi) - std::log(limit)) < tolerance);
    CHECK(std::abs(prior.token_score(chi, p) - std::log(exact / n)) < 1.5 * tolerance);
    CHECK(prior.token_score(chi, Matrix<double>::Identity(F, F)) == doctest::Approx(prior.token_score(chi)));
    CHECK(std::abs(prior.token_score(chi, p) - prior.token_score(chi)) > 1e-3);
  }
}

TEST_CASE("prior: points of probability 0 and large projections are harmless") {
  Matrix<double> points(2, 1);
  points << 1, 5;
  const Prior prior = Prior::discrete(points, vector_of({1, 0}));
  CHECK(prior.token_score(vector_of({2})) == doctest::Approx(1.5));
  CHECK(prior.token_score(vector_of({1e4})) == doctest::Approx(1e4 - 0.5));
  CHECK(prior.token_score(vector_of({-1e4})) == doctest::Approx(-1e4 - 0.5));
}

TEST_CASE("prior: eigenvalues of the covariance, ascending") {
  CHECK(Prior::gaussian(vector_of({4, 1, 9})).covariance_eigenvalues().isApprox(vector_of({1, 4, 9}), 1e-14));
  const Vector<double> flip = Prior::flip2(2, 3).covariance_eigenvalues();
  CHECK(std::abs(flip[0]) < 1e-14);
  CHECK(flip[1] == doctest::Approx(3));
}

TEST_CASE("prior: rejections name the field") {
  CHECK(message_of([] { (void)Prior::flip2(-1, 2); }) ==
        "prior: variance nu1 must be at least 0 and finite, got -1");
  CHECK(message_of([] { (void)Prior::flip2(1, -2); }) ==
        "prior: variance nu2 must be at least 0 and finite, got -2");
  CHECK(message_of([] { (void)Prior::spikes(2, -1); }) ==
        "prior: variance nu must be at least 0 and finite, got -1");
  CHECK(message_of([] { (void)Prior::spikes(0, 1); }) == "prior: features must be at least 1, got 0");
  CHECK(message_of([] { (void)Prior::gaussian({}); }) == "prior: variances must not be empty");
  CHECK(message_of([] { (void)Prior::discrete({}, {}); }).find("the support is empty") != std::string::npos);
  const Matrix<double> two = Matrix<double>::Ones(2, 1);
  CHECK(message_of([&] { (void)Prior::discrete(two, vector_of({1})); }) ==
        "prior: probs must have one entry a point (2), got 1");
  CHECK(message_of([&] {
          (void)Prior::discrete(two, vector_of({1.5, -.5}));
        }) == "prior: probs must be at least 0 and finite, got -0.5");
  CHECK(message_of([&] { (void)Prior::discrete(two, vector_of({.5, .5 + 1e-13})); }).empty());
  CHECK(message_of([&] {
          (void)Prior::discrete(two, vector_of({.5, .5 + 1e-11}));
        }).find("must sum to 1") != std::string::npos);
}
