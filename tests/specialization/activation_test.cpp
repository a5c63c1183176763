#include "widelimit/specialization/activation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

// Central differences with step 1e-5: truncation 1e-10, rounding 1e-11.
constexpr double slope_tolerance = 1e-8;

struct Scores {
  Matrix<double> chi;
  Vector<double> b;
  Vector<double> v;
};

Scores random_scores(HeadActivation activation, Index heads, Index tokens, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  return {random_matrix(heads, tokens, random), random_vector(heads, random, 0.5),
          (random_vector(scale_count(activation, heads), random, 0.3).array() + 1).matrix()};
}

}  // namespace

TEST_CASE("head activation: names go both ways and others are rejected") {
  for (const HeadActivation activation : all_activations)
    CHECK(head_activation_from_name(head_activation_name(activation)) == activation);
  CHECK_THROWS_WITH_AS((void)head_activation_from_name("softplus"),
                       "activation: expected softmax, softmaxv, softmax1 or bayes, got \"softplus\"",
                       ArgumentError);
}

TEST_CASE("head activation: definitions, written out") {
  const Scores in = random_scores(HeadActivation::softmaxv, 3, 4, 1);
  const Matrix<double> e = in.chi.array().exp().matrix();
  const Vector<double> one = Vector<double>::Constant(1, 1.3);
  for (Index h = 0; h < 3; ++h)
    for (Index l = 0; l < 4; ++l) {
      const double sum = e.row(h).sum();
      CHECK(head_activation(HeadActivation::softmax, in.chi, in.b, one)(h, l) ==
            doctest::Approx(e(h, l) / sum));
      CHECK(head_activation(HeadActivation::softmaxv, in.chi, in.b, in.v)(h, l) ==
            doctest::Approx(in.v[h] * e(h, l) / sum));
      CHECK(head_activation(HeadActivation::softmax1, in.chi, in.b, one)(h, l) ==
            doctest::Approx(1.3 * e(h, l) / (std::exp(in.b[h]) + sum)));
      double all = 0;
      for (Index k = 0; k < 3; ++k) all += std::exp(in.b[k]) * e.row(k).sum();
      CHECK(head_activation(HeadActivation::bayes, in.chi, in.b, one)(h, l) ==
            doctest::Approx(3 * e(h, l) * std::exp(in.b[h]) / all));
    }
}

TEST_CASE("head activation: normalisation and conserved sums of the gradients") {
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    const Scores in = random_scores(activation, 4, 5, 2);
    const Vector<double> a = aggregate(head_activation(activation, in.chi, in.b, in.v));
    const TokenLoss loss = token_loss(activation, in.chi, in.b, in.v, 3);
    const Vector<double> sums = loss.chi_gradient.rowwise().sum();
    CHECK(distance(loss.aggregate, a) < 1e-15);
    if (activation == HeadActivation::softmax || activation == HeadActivation::bayes)
      CHECK(a.sum() == doctest::Approx(1).scale(0).epsilon(1e-14));
    if (activation == HeadActivation::softmax || activation == HeadActivation::softmaxv)
      CHECK(sums.cwiseAbs().maxCoeff() < 1e-15);
    if (activation == HeadActivation::bayes) {
      CHECK(std::abs(sums.sum()) < 1e-15);
      CHECK(distance(loss.b_gradient, sums) < 1e-15);
    }
    if (activation == HeadActivation::softmax1) CHECK(distance(loss.b_gradient, -sums) < 1e-15);
    if (has_scale(activation)) {
      Vector<double> g = 2 * a;
      g[3] -= 2;
      CHECK(in.v.dot(loss.v_gradient) == doctest::Approx(g.dot(a)));
    }
  }
}

TEST_CASE("head activation: Jacobians and loss gradients are the slopes") {
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    Scores in = random_scores(activation, 3, 4, 3);
    const ActivationJacobians jacobians = head_activation_jacobians(activation, in.chi, in.b, in.v);
    const TokenLoss loss = token_loss(activation, in.chi, in.b, in.v, 1);
    const auto check = [&](double& entry, const auto& column, double gradient) {
      for (Index row = 0; row < 12; ++row) {
        const auto sigma = [&] { return head_activation(activation, in.chi, in.b, in.v)(row / 4, row % 4); };
        CHECK(std::abs(slope(entry, sigma) - column[row]) < slope_tolerance);
      }
      const auto value = [&] { return token_loss(activation, in.chi, in.b, in.v, 1).loss; };
      CHECK(std::abs(slope(entry, value) - gradient) < slope_tolerance);
    };
    for (Index i = 0; i < 12; ++i)
      check(in.chi(i / 4, i % 4), jacobians.chi.col(i), loss.chi_gradient(i / 4, i % 4));
    for (Index h = 0; h < 3; ++h) check(in.b[h], jacobians.b.col(h), loss.b_gradient[h]);
    for (Index k = 0; k < in.v.size(); ++k) check(in.v[k], jacobians.v.col(k), loss.v_gradient[k]);
  }
}

TEST_CASE("head activation: limits in which two activations agree") {
  const Scores in = random_scores(HeadActivation::softmax, 3, 5, 4);
  const Vector<double> one = Vector<double>::Ones(1), ones = Vector<double>::Ones(3);
  const TokenLoss softmax = token_loss(HeadActivation::softmax, in.chi, in.b, one, 2);
  const TokenLoss scaled = token_loss(HeadActivation::softmaxv, in.chi, in.b, ones, 2);
  CHECK(scaled.loss == softmax.loss);
  CHECK(scaled.chi_gradient == softmax.chi_gradient);

  // exp(b) = exp(-40) against sums of order 1.
  const TokenLoss never_idle =
      token_loss(HeadActivation::softmax1, in.chi, Vector<double>::Constant(3, -40), one, 2);
  CHECK(distance(never_idle.chi_gradient, softmax.chi_gradient) < 1e-15);
  CHECK(never_idle.loss == doctest::Approx(softmax.loss).scale(0).epsilon(1e-14));

  Matrix<double> equal(3, 5);
  equal.rowwise() = in.chi.row(0);
  const Vector<double> b = Vector<double>::Constant(3, 0.7);
  CHECK(distance(head_activation(HeadActivation::bayes, equal, b, one),
                 head_activation(HeadActivation::softmax, equal, b, one)) < 1e-15);
}

TEST_CASE("head activation: shifts that change nothing") {
  const Scores in = random_scores(HeadActivation::bayes, 3, 4, 5);
  const Vector<double> shifted = (in.b.array() + 2.5).matrix();
  CHECK(distance(head_activation(HeadActivation::bayes, in.chi, shifted, in.v),
                 head_activation(HeadActivation::bayes, in.chi, in.b, in.v)) < 1e-14);
  Matrix<double> chi = in.chi;
  Vector<double> b = in.b;
  chi.row(1).array() += 1.75;
  b[1] += 1.75;
  CHECK(distance(head_activation(HeadActivation::softmax1, chi, b, in.v),
                 head_activation(HeadActivation::softmax1, in.chi, in.b, in.v)) < 1e-15);
}

TEST_CASE("head activation: scores of any size, one head and one token") {
  for (const HeadActivation activation : all_activations) {
    Scores in = random_scores(activation, 2, 3, 6);
    for (const double scale : {500.0, 1e5, 1e300}) {
      const Matrix<double> chi = in.chi * scale;
      CHECK(head_activation(activation, chi, in.b, in.v).allFinite());
      CHECK(token_loss(activation, chi, in.b, in.v, 0).chi_gradient.allFinite());
    }
  }
  const Vector<double> zero = Vector<double>::Zero(1), one = Vector<double>::Ones(1);
  const Matrix<double> single = Matrix<double>::Constant(1, 1, -3);
  CHECK(head_activation(HeadActivation::softmax, single, zero, one)(0, 0) == 1);
  CHECK(head_activation(HeadActivation::softmax1, Matrix<double>::Zero(1, 1), zero, one)(0, 0) == 0.5);
}

TEST_CASE("head activation: rejections name the field") {
  Scores in = random_scores(HeadActivation::softmax, 2, 3, 7);
  const auto run = [&](HeadActivation activation) {
    return message_of([&] { (void)head_activation(activation, in.chi, in.b, in.v); });
  };
  CHECK(run(HeadActivation::softmax).empty());
  CHECK(run(HeadActivation::softmaxv) ==
        "head activation: v of softmaxv must have 2 entries for 2 heads, got 1");
  in.b.resize(3);
  CHECK(run(HeadActivation::softmax) == "head activation: b must have one entry a head (2), got 3");
  in.b = Vector<double>::Zero(2);
  in.chi(1, 2) = std::numeric_limits<double>::quiet_NaN();
  CHECK(run(HeadActivation::softmax) == "head activation: chi must be finite, got nan at (1, 2)");
  in.chi.resize(2, 0);
  CHECK(run(HeadActivation::softmax) ==
        "head activation: chi must have at least one head and one token, got 2 x 0");
  in.chi = Matrix<double>::Zero(2, 3);
  for (const Index eps : {Index{-1}, Index{3}})
    CHECK_THROWS_AS((void)token_loss(HeadActivation::softmax, in.chi, in.b, in.v, eps), ArgumentError);
  CHECK_THROWS_WITH_AS((void)token_loss(HeadActivation::softmax, in.chi, in.b, in.v, 3),
                       "token_loss: eps must lie in [0, 3), got 3", ArgumentError);
}
