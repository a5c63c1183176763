#include "widelimit/specialization/bayes.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/quadrature.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

Prior three_points() {
  Matrix<double> points(3, 2);
  points << 1, .5, -.4, 2, 0, -1.5;
  return Prior::discrete(points, Eigen::Vector3d(.5, .2, .3));
}

}  // namespace

TEST_CASE("bayes: the posterior is Bayes' rule over all pairs (token, point)") {
  const Prior prior = three_points();
  numerics::RandomStream random(1);
  const Matrix<double> chi_star = random_matrix(4, 2, random);
  Vector<double> joint = Vector<double>::Zero(4);
  // P(X | token, theta) relative to pure noise: exp(theta . chi* - |theta|^2 / 2).
  for (Index l = 0; l < 4; ++l)
    for (Index k = 0; k < 3; ++k)
      joint[l] += prior.probabilities()[k] * std::exp(prior.points().row(k).dot(chi_star.row(l)) -
                                                      prior.points().row(k).squaredNorm() / 2);
  CHECK(distance(bayes_posterior(prior, chi_star), joint / joint.sum()) < 1e-15);
}

TEST_CASE("bayes: bayes heads reach the risk with zero gradient; the printed bias does not") {
  const Prior prior = three_points();
  const GridShape grid{41, 8};
  const double risk = bayes_risk_by_quadrature(prior, 2, grid);
  HeadParameters heads = bayes_optimal_heads(prior, 3);
  const SampledLoss loss = loss_by_quadrature(HeadActivation::bayes, heads, prior, 2, grid);
  CHECK(std::abs(loss.loss - risk) < 1e-10);
  CHECK(loss.gradient.m.cwiseAbs().maxCoeff() < 1e-10);
  CHECK(loss.gradient.b.cwiseAbs().maxCoeff() < 1e-10);
  for (Index h = 0; h < 3; ++h)
    heads.b[h] = -prior.points().row(h).squaredNorm() * std::log(prior.probabilities()[h]) / 2;
  CHECK(loss_by_quadrature(HeadActivation::bayes, heads, prior, 2, grid).loss - risk ==
        doctest::Approx(0.156).scale(0).epsilon(0.01));
}

TEST_CASE("bayes: heads beyond the points share a point's weight") {
  const Prior prior = three_points();
  numerics::RandomStream random(2);
  const SampleSet<double> samples = SampleSet<double>::draw(prior, {4, 5, 300}, 1);
  const HeadParameters five = bayes_optimal_heads(prior, 5);
  const HeadParameters three = bayes_optimal_heads(prior, 3);
  HeadParameters padded = three;
  padded.r = Matrix<double>::Zero(3, 5);
  CHECK(sampled_loss(HeadActivation::bayes, five, samples).loss ==
        doctest::Approx(sampled_loss(HeadActivation::bayes, padded, samples).loss)
            .scale(0)
            .epsilon(1e-13)
            .scale(0));
}

TEST_CASE("bayes: sampled risk agrees with quadrature, and no trained loss is below it") {
  for (const Prior& prior : {Prior::flip2(2, 2), Prior::gaussian(linear_variances(2, 2, 0.7))}) {
    const BayesRisk sampled = bayes_risk(prior, 2, 200'000, 3);
    const double exact = bayes_risk_by_quadrature(prior, 2, {31, 7});
    CHECK(std::abs(sampled.risk - exact) < 4 * sampled.standard_error);
    numerics::RandomStream random(4);
    for (const HeadActivation activation : all_activations) {
      HeadParameters at = random_parameters(activation, 3, 2, random);
      at.r.setZero();
      CHECK(loss_by_quadrature(activation, at, prior, 2, {31, 7}).loss > exact);
    }
  }
  CHECK(bayes_risk(Prior::flip2(0, 0), 5, 1000, 1).risk == doctest::Approx(0.8).epsilon(2.25e-14).scale(0));
}

TEST_CASE("bayes: E p_eps = E sum p^2") {
  const Prior prior = Prior::gaussian(linear_variances(2, 3, 1));
  const auto samples = SampleSet<double>::draw(prior, {4, 1, 100'000}, 5);
  double difference = 0, square = 0;
  Matrix<double> chi_star(4, 2);
  for (Index i = 0; i < samples.count(); ++i) {
    for (Index l = 0; l < 4; ++l)
      for (Index f = 0; f < 2; ++f) chi_star(l, f) = samples.value(i, l, f);
    const Vector<double> p = bayes_posterior(prior, chi_star);
    const double d = p[0] - p.squaredNorm();
    difference += d;
    square += d * d;
  }
  CHECK(std::abs(difference) < 4 * std::sqrt(square));
}

TEST_CASE("bayes: equal bits for any number of threads") {
  const auto risk = [](int threads) {
    return with_threads(threads, [] { return bayes_risk(Prior::spikes(3, 5), 4, 30'000, 9).risk; });
  };
  CHECK(risk(1) == risk(3));
}

TEST_CASE("bayes: rejections name the field") {
  const Prior prior = three_points();
  CHECK(message_of([&] { (void)bayes_posterior(prior, Matrix<double>::Zero(3, 1)); }) ==
        "bayes_posterior: chi_star must be 3 x 2, got 3 x 1");
  CHECK(message_of([&] {
          (void)bayes_posterior(prior, Matrix<double>::Zero(3, 2), Matrix<double>::Zero(1, 1));
        }) == "prior: spike_gram must be 2 x 2, got 1 x 1");
  CHECK(message_of([&] { (void)bayes_risk(prior, 0, 10, 1); }) ==
        "bayes_risk: tokens L must be at least 1, got 0");
  CHECK(message_of([&] { (void)bayes_risk(prior, 2, 1, 1); }) ==
        "bayes_risk: count n must be at least 2, got 1");
  CHECK(message_of([&] { (void)bayes_optimal_heads(prior, 2); }) ==
        "bayes_optimal_heads: heads H (one a point of the prior) must be at least 3, got 2");
  CHECK(message_of([] {
          (void)bayes_optimal_heads(Prior::gaussian(linear_variances(1, 1, 1)), 2);
        }).find("must be discrete") != std::string::npos);
}

TEST_CASE("bayes: projections beyond the range of double name their token") {
  for (const Prior& prior : {Prior::flip2(2, 2), Prior::gaussian(Vector<double>::Constant(2, 2))}) {
    Matrix<double> chi_star = Matrix<double>::Zero(3, 2);
    chi_star(1, 0) = chi_star(1, 1) = 1e308;
    CHECK(message_of([&] {
            (void)bayes_posterior(prior, chi_star);
          }).find("bayes_posterior: the log odds of token 1 must be finite, but came out as") == 0);
    CHECK(message_of([&] {
            (void)bayes_posterior(prior, chi_star, Matrix<double>::Identity(2, 2));
          }).find("the log odds of token 1") != std::string::npos);
  }
}
