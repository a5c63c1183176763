#include "widelimit/specialization/hessian.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

/// All sign patterns in place of the Gaussian variables: moments agree to third order, so that the loss
/// agrees with the population's to third order in (m, r). One feature, theta = +-sqrt(nu).
SampleSet<double> sign_samples(Index tokens, Index heads, double nu) {
  const Index variables = (1 + heads) * tokens, patterns = Index{1} << (variables + 1);
  SampleValues values{patterns, tokens, 1, heads, {}, {}, {}, {}};
  values.eps.assign(static_cast<std::size_t>(patterns), 0);
  for (Index pattern = 0; pattern < patterns; ++pattern) {
    const auto sign = [&](Index bit) { return (pattern >> bit) & 1 ? 1.0 : -1.0; };
    for (Index l = 0; l < tokens; ++l) {
      values.chi_star.push_back(sign(l) + (l == 0 ? std::sqrt(nu) * sign(variables) : 0));
      for (Index h = 0; h < heads; ++h) values.xi.push_back(sign(tokens * (1 + h) + l));
    }
  }
  return SampleSet<double>(values);
}

constexpr double step_size = 1e-4;
// Fourth derivatives times step_size^2, and rounding 1e-16 / step_size.
constexpr double tolerance = 1e-6;

}  // namespace

TEST_CASE("hessian constants: numerical Hessian at the origin, all activations") {
  const double nu = 1.7;
  struct Size {
    Index tokens, heads;
  };
  for (const HeadActivation activation : all_activations)
    for (const Size& size : {Size{3, 2}, Size{4, 2}, Size{2, 3}, Size{5, 1}}) {
      CAPTURE(head_activation_name(activation));
      CAPTURE(size.tokens);
      const SampleSet<double> samples = sign_samples(size.tokens, size.heads, nu);
      const HessianConstants c = hessian_constants(activation, size.tokens, size.heads);
      HeadParameters at = with_initial_offsets(activation, Matrix<double>::Zero(size.heads, 1),
                                               Matrix<double>::Zero(size.heads, size.heads));
      at.b.setConstant(c.b);
      at.v.setConstant(c.v);
      const SampledLoss origin = sampled_loss(activation, at, samples);
      CHECK(origin.loss == doctest::Approx(1 - 1 / static_cast<double>(size.tokens)).scale(0).epsilon(1e-10));
      CHECK(origin.gradient.m.cwiseAbs().maxCoeff() < 1e-12);
      CHECK(origin.gradient.r.cwiseAbs().maxCoeff() < 1e-12);
      CHECK(origin.gradient.b.cwiseAbs().maxCoeff() < 1e-10);
      for (Index h = 0; h < size.heads; ++h)
        for (Index k = 0; k < size.heads; ++k) {
          const double same = h == k ? 1 : 0;
          const auto m_gradient = [&] { return sampled_loss(activation, at, samples).gradient.m(h, 0); };
          CHECK(std::abs(slope(at.m(k, 0), m_gradient, step_size) -
                         2 * (c.c1 + (c.c2 + c.c4) * nu - same * (c.c3 + c.c4) * nu)) < tolerance);
          // c1 sum S with S = r r^T: the Hessian in r couples equal columns.
          const auto r_gradient = [&] { return sampled_loss(activation, at, samples).gradient.r(h, 0); };
          CHECK(std::abs(slope(at.r(k, 0), r_gradient, step_size) - 2 * c.c1) < tolerance);
          const auto b_gradient = [&] { return sampled_loss(activation, at, samples).gradient.b[h]; };
          CHECK(std::abs(slope(at.b[k], b_gradient, step_size) - 2 * c.c5) < tolerance);
        }
      const EscapeRates rates = escape_rates(c, size.heads, nu);
      CHECK(rates.split == doctest::Approx(2 * (c.c3 + c.c4) * nu));
      if (size.heads == 1)
        CHECK(std::abs(rates.common + 2 * (c.c1 + (c.c2 + c.c4) * nu - (c.c3 + c.c4) * nu)) < 1e-15);
    }
}

TEST_CASE("hessian constants: softmax does not split at two tokens, bayes is faster") {
  CHECK(escape_rates(hessian_constants(HeadActivation::softmax, 2, 3), 3, 5).split == 0);
  for (const Index tokens : {3, 5, 9}) {
    const double softmax = escape_rates(hessian_constants(HeadActivation::softmax, tokens, 4), 4, 2).split;
    const double bayes = escape_rates(hessian_constants(HeadActivation::bayes, tokens, 4), 4, 2).split;
    CHECK(bayes / softmax == doctest::Approx(1 / (1 - 2 / static_cast<double>(tokens))));
  }
}

TEST_CASE("softmax1 fixed point: the flow of b and v at m = r = 0 ends there") {
  for (const double b0 : {0.0, 0.5}) {
    const Index tokens = 4, heads = 3;
    const auto samples =
        SampleSet<double>::draw(Prior::gaussian(linear_variances(1, 1, 1)), {tokens, heads, 1}, 1);
    HeadParameters at = with_initial_offsets(HeadActivation::softmax1, Matrix<double>::Zero(heads, 1),
                                             Matrix<double>::Zero(heads, heads));
    at.b.setConstant(b0);
    at.v.setConstant(0.8);
    const Softmax1Point end = softmax1_fixed_point(tokens, heads, b0, 0.8);
    CHECK(4 * end.v == doctest::Approx(4 + std::exp(end.b)).scale(0).epsilon(1e-14));
    for (int step = 0; step < 4000; ++step) {
      // m and r are held at 0 by hand: a single sample would move them.
      const HeadParameters g = sampled_loss(HeadActivation::softmax1, at, samples).gradient;
      at.b -= 0.01 * g.b;
      at.v -= 0.01 * g.v;
    }
    CHECK(std::abs(at.b[0] - end.b) < 1e-4);
    CHECK(std::abs(at.v[0] - end.v) < 1e-4);
  }
}

TEST_CASE("split rate: numerical curvature at the unspecialised saddle, by quadrature") {
  const double nu1 = 1.2, nu2 = 2.3;
  const GridShape grid{37, 7.5};
  for (const HeadActivation activation : {HeadActivation::softmax, HeadActivation::bayes}) {
    HeadParameters at =
        with_initial_offsets(activation, Matrix<double>::Zero(2, 2), Matrix<double>::Zero(2, 2));
    at.m.col(0).setConstant(std::sqrt(nu1));
    const auto pull = [&](double split) {
      at.m(0, 1) = split;
      at.m(1, 1) = -split;
      return loss_by_quadrature(activation, at, Prior::flip2(nu1, nu2), 2, grid).gradient.m(0, 1);
    };
    const double h = 1e-3;
    CHECK(std::abs(-pull(h) / h - split_rate_by_quadrature(activation, 2, 2, nu1, nu2).rate) < 1e-5);
  }
}

TEST_CASE("split rate: sampling agrees with quadrature and with the note at L = 10") {
  for (const HeadActivation activation : {HeadActivation::softmax, HeadActivation::bayes}) {
    const SplitRate sampled = split_rate_by_sampling(activation, 3, 4, 1, 3, 200'000, 1);
    const SplitRate exact = split_rate_by_quadrature(activation, 3, 4, 1, 3);
    CHECK(std::abs(sampled.rate - exact.rate) < 4 * sampled.standard_error);
    CHECK(sampled.standard_error > 0);
  }
  const SplitRate softmax = split_rate_by_sampling(HeadActivation::softmax, 10, 2, 2, 2, 200'000, 2);
  CHECK(std::abs(softmax.rate - 0.0881) < 4 * std::hypot(softmax.standard_error, 0.0002));
}

TEST_CASE("fourth order: what a learned feature adds to the Hessian of a new one") {
  // z = +-sqrt(3) with probability 1/6 each and 0 with 2/3 has the moments of a normal up to the fifth.
  const Index tokens = 3, heads = 3;
  const double learned = 1.5, fresh = 0.8;
  const double nodes[3] = {-std::sqrt(3.0), 0, std::sqrt(3.0)}, weights[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6};
  const double scale[2] = {std::sqrt(1 + learned), std::sqrt(1 + fresh)};
  SampleValues values{0, tokens, 2, heads, {}, {}, {}, {}};
  for (int code = 0; code < 729; ++code) {
    double weight = 1;
    for (int k = 0, rest = code; k < 6; ++k, rest /= 3) {
      const double z = nodes[rest % 3];
      weight *= weights[rest % 3];
      values.chi_star.push_back(k < 2 ? scale[k] * z : z);
    }
    values.xi.insert(values.xi.end(), 9, 0.0);
    values.eps.push_back(0);
    values.weights.push_back(weight);
    ++values.count;
  }
  const SampleSet<double> samples(values);
  const Eigen::Vector3d direction(1, 0.5, -1.5);
  const auto hessian = [&](double size) {
    HeadParameters at =
        with_initial_offsets(HeadActivation::softmax, Matrix<double>::Zero(3, 2), Matrix<double>::Zero(3, 3));
    at.m.col(0) = size * direction;
    Matrix<double> result(3, 3);
    for (Index h = 0; h < 3; ++h)
      for (Index k = 0; k < 3; ++k)
        result(h, k) = slope(
            at.m(k, 1), [&] { return sampled_loss(HeadActivation::softmax, at, samples).gradient.m(h, 1); },
            1e-3);
    return result;
  };
  const double size = 0.02;
  const Matrix<double> gained = (hessian(size) - hessian(0)) / (size * size);
  const FourthOrder k = fourth_order(tokens, heads, learned, fresh);
  Matrix<double> expected = k.k1 * direction.squaredNorm() * Matrix<double>::Identity(3, 3) +
                            k.k3 * direction * direction.transpose();
  expected.diagonal() += k.k2 * direction.cwiseAbs2();
  // The constants hold for new columns with zero head sum.
  const Matrix<double> split = Matrix<double>::Identity(3, 3) - Matrix<double>::Constant(3, 3, 1.0 / 3);
  // Sixth-order terms are of relative size (size)^2, with coefficients of order 10.
  CHECK(distance(split * gained * split, split * expected * split) < 0.01 * expected.cwiseAbs().maxCoeff());
  CHECK(k.k3 > 0);
}

TEST_CASE("hessian: rejections name the field") {
  CHECK(message_of([] { (void)hessian_constants(HeadActivation::softmax, 1, 2); }) ==
        "hessian_constants: tokens L must be at least 2, got 1");
  CHECK(message_of([] { (void)hessian_constants(HeadActivation::bayes, 3, 0); }) ==
        "hessian_constants: heads H must be at least 1, got 0");
  CHECK(message_of([] { (void)softmax1_fixed_point(1, 2); }) ==
        "softmax1_fixed_point: tokens L must be at least 2, got 1");
  CHECK(message_of([] { (void)fourth_order(1, 2, 1, 1); }) ==
        "fourth_order: tokens L must be at least 2, got 1");
  CHECK(message_of([] { (void)split_rate_by_quadrature(HeadActivation::softmax, 3, 1, 1, 1); }) ==
        "split_rate: heads H must be at least 2, got 1");
  CHECK(message_of([] { (void)split_rate_by_quadrature(HeadActivation::softmax1, 3, 2, 1, 1); }) ==
        "split_rate: activation must be softmax or bayes, whose saddle is known, got softmax1");
  CHECK(message_of([] { (void)split_rate_by_sampling(HeadActivation::bayes, 3, 2, -1, 1, 10, 1); }) ==
        "split_rate: variance nu must be at least 0 and finite, got -1");
  CHECK(message_of([] {
          (void)split_rate_by_quadrature(HeadActivation::bayes, 8, 2, 1, 1);
        }).find("use split_rate_by_sampling") != std::string::npos);
}
