#include "widelimit/specialization/loss.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

/// Loss, squared loss, gradients and noise sequence by sequence, from the scalar code.
struct Oracle {
  double loss = 0, square = 0, weight = 0;
  HeadParameters gradient;
  Matrix<double> noise;
};

Oracle by_sequences(HeadActivation activation, const HeadParameters& at, const SampleValues& values) {
  const Index H = at.m.rows(), F = values.features, R = values.noises, L = values.tokens;
  Oracle sum;
  sum.gradient = {Matrix<double>::Zero(H, F), Matrix<double>::Zero(H, R), Vector<double>::Zero(H),
                  Vector<double>::Zero(at.v.size())};
  sum.noise = Matrix<double>::Zero(H, H);
  for (Index i = 0; i < values.count; ++i) {
    const Eigen::Map<const Matrix<double>> chi_star(values.chi_star.data() + i * L * F, L, F);
    const Eigen::Map<const Matrix<double>> xi(values.xi.data() + i * L * R, L, R);
    const Matrix<double> chi = at.m * chi_star.transpose() + at.r * xi.transpose();
    const TokenLoss one = token_loss(activation, chi, at.b, at.v, values.eps[static_cast<std::size_t>(i)]);
    const double w = values.weights.empty() ? 1 : values.weights[static_cast<std::size_t>(i)];
    sum.weight += w;
    sum.loss += w * one.loss;
    sum.square += w * one.loss * one.loss;
    sum.gradient.m += w * one.chi_gradient * chi_star;
    sum.gradient.r += w * one.chi_gradient * xi;
    sum.gradient.b += w * one.b_gradient;
    sum.gradient.v += w * one.v_gradient;
    sum.noise += w * one.chi_gradient * one.chi_gradient.transpose();
  }
  return sum;
}

double gradient_distance(const HeadParameters& a, const HeadParameters& b) {
  return std::max({distance(a.m, b.m), distance(a.r, b.r), distance(a.b, b.b), distance(a.v, b.v)});
}

}  // namespace

TEST_CASE("sampled loss: the kernel agrees with single sequences across tile and block edges and all sizes") {
  numerics::RandomStream random(1);
  for (const HeadActivation activation : all_activations)
    for (const Index count : {1, 63, 64, 65, 1024, 1025, 2100})
      for (const Index heads : {1, 2, 3, 5, 8}) {
        const Index tokens = 1 + heads % 4, features = 1 + count % 5;
        CAPTURE(count);
        CAPTURE(heads);
        const HeadParameters at = random_parameters(activation, heads, features, random);
        const SampleValues values = random_values(count, tokens, features, heads, random);
        const SampledLoss got =
            sampled_loss(activation, at, SampleSet<double>(values), LossDetail::gradients_and_noise);
        const Oracle sum = by_sequences(activation, at, values);
        const double n = static_cast<double>(count);
        // A single token has weight 1 but for a rounding, whose square is the loss.
        REQUIRE(std::abs(got.loss - sum.loss / n) <= 1e-12 * sum.loss / n + 1e-30);
        const double variance = sum.square / n - sum.loss * sum.loss / (n * n);
        CHECK(std::abs(got.standard_error - std::sqrt(std::max(variance, 0.0) / n)) < 1e-7);
        HeadParameters mean = sum.gradient;
        mean.m /= n;
        mean.r /= n;
        mean.b /= n;
        mean.v /= n;
        CHECK(gradient_distance(got.gradient, mean) < 1e-13);
        CHECK(distance(got.noise, sum.noise / n) < 1e-13);
      }
}

TEST_CASE("sampled loss: weights act as repetitions") {
  numerics::RandomStream random(2);
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 3, 2, random);
    SampleValues values = random_values(100, 4, 2, 3, random);
    for (Index i = 0; i < 100; ++i) values.weights.push_back(0.2 + 0.01 * static_cast<double>(i % 7));
    const Oracle sum = by_sequences(activation, at, values);
    const SampledLoss got =
        sampled_loss(activation, at, SampleSet<double>(values), LossDetail::gradients_and_noise);
    CHECK(got.loss == doctest::Approx(sum.loss / sum.weight).scale(0).epsilon(1e-13));
    CHECK(distance(got.gradient.r, sum.gradient.r / sum.weight) < 1e-14);
    CHECK(distance(got.gradient.b, sum.gradient.b / sum.weight) < 1e-14);
    CHECK(distance(got.noise, sum.noise / sum.weight) < 1e-14);
  }
}

TEST_CASE("sampled loss: gradients are the slopes to 1e-7, and nothing else moves the loss") {
  numerics::RandomStream random(3);
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    const auto samples = SampleSet<double>::draw(Prior::spikes(3, 4), {5, 4, 500}, 7);
    HeadParameters at = random_parameters(activation, 4, 3, random);
    const HeadParameters gradient = sampled_loss(activation, at, samples).gradient;
    const auto loss = [&] { return sampled_loss(activation, at, samples, LossDetail::loss_only).loss; };
    const auto check = [&](auto& parameter, const auto& expected) {
      for (Index i = 0; i < parameter.rows(); ++i)
        for (Index j = 0; j < parameter.cols(); ++j)
          CHECK(std::abs(slope(parameter(i, j), loss) - expected(i, j)) <
                1e-7 * std::max(1.0, std::abs(expected(i, j))));
    };
    check(at.m, gradient.m);
    check(at.r, gradient.r);
    check(at.b, gradient.b);
    if (has_scale(activation)) check(at.v, gradient.v);
    if (!has_bias(activation)) CHECK(gradient.b.isZero(0));
    if (!has_scale(activation)) CHECK(gradient.v.isZero(0));
  }
}

TEST_CASE("sampled loss: single precision keeps seven digits") {
  numerics::RandomStream random(4);
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 4, 2, random);
    const Prior prior = Prior::flip2(2, 2);
    const SampledLoss single = sampled_loss(activation, at, SampleSet<float>::draw(prior, {5, 4, 6400}, 1));
    const SampledLoss twice = sampled_loss(activation, at, SampleSet<double>::draw(prior, {5, 4, 6400}, 1));
    // A float has 6e-8; errors of 6400 samples average out.
    CHECK(std::abs(single.loss - twice.loss) < 1e-7);
    CHECK(gradient_distance(single.gradient, twice.gradient) < 1e-7);
    CHECK(single.loss != twice.loss);
  }
}

TEST_CASE("sampled loss: equal bits for any number of threads") {
  const Prior prior = Prior::gaussian(linear_variances(3, 9, 1));
  const auto evaluate = [&](std::uint64_t seed) {
    const auto samples = SampleSet<float>::draw(prior, {5, 4, 20'000}, seed);
    return sampled_loss(HeadActivation::softmax1, noise_start(HeadActivation::softmax1, 4, 3, 1, 3), samples);
  };
  const SampledLoss one = with_threads(1, [&] { return evaluate(5); });
  for (const int threads : {2, 3, 8}) {
    const SampledLoss many = with_threads(threads, [&] { return evaluate(5); });
    CHECK(many.loss == one.loss);
    CHECK(many.gradient.m == one.gradient.m);
    CHECK(many.gradient.r == one.gradient.r);
    CHECK(many.gradient.b == one.gradient.b);
  }
  CHECK(evaluate(6).loss != one.loss);
}

TEST_CASE("sampled loss: at m = r = 0 uniform attention, and the pull of the mean") {
  for (const HeadActivation activation : all_activations) {
    const Prior prior = Prior::flip2(2, 1);
    const auto samples = SampleSet<double>::draw(prior, {5, 3, 200'000}, 8);
    const HeadParameters at =
        with_initial_offsets(activation, Matrix<double>::Zero(3, 2), Matrix<double>::Zero(3, 3));
    const SampledLoss loss = sampled_loss(activation, at, samples);
    const double w = activation == HeadActivation::softmax1 ? 1.0 / 6 : 1.0 / 5;
    CHECK(loss.loss == doctest::Approx((1 - w) * (1 - w) + 4 * w * w).scale(0).epsilon(1e-12));
    const double pull = 2 * w / 3 * ((1 - w) * (1 - w) + 4 * w * w);
    // Noise of the mean of 2 * 10^5 normals.
    CHECK(distance(loss.gradient.m, -pull * Matrix<double>::Ones(3, 1) * prior.mean().transpose()) <
          5 * pull / std::sqrt(200'000.0) * 2);
  }
}

TEST_CASE("sampled loss: permuting heads permutes gradients") {
  numerics::RandomStream random(9);
  const Eigen::PermutationMatrix<3> cycle(Eigen::Vector3i(1, 2, 0));
  for (const HeadActivation activation : all_activations) {
    const HeadParameters at = random_parameters(activation, 3, 2, random);
    HeadParameters other{cycle * at.m, cycle * at.r, cycle * at.b, at.v};
    if (activation == HeadActivation::softmaxv) other.v = cycle * at.v;
    const auto samples = SampleSet<double>::draw(Prior::flip2(1, 2), {4, 3, 300}, 2);
    const SampledLoss a = sampled_loss(activation, at, samples), b = sampled_loss(activation, other, samples);
    CHECK(a.loss == doctest::Approx(b.loss).scale(0).epsilon(1e-13));
    CHECK(distance(cycle * a.gradient.m, b.gradient.m) < 1e-14);
    CHECK(distance(cycle * a.gradient.r, b.gradient.r) < 1e-14);
  }
}

TEST_CASE("sampled loss: rejections name the field") {
  const auto samples = SampleSet<float>::draw(Prior::flip2(2, 2), {3, 2, 10}, 1);
  const HeadParameters good = noise_start(HeadActivation::softmax, 2, 2, 1, 1);
  const auto run = [&](const auto& spoil, HeadActivation activation = HeadActivation::softmax) {
    HeadParameters at = good;
    spoil(at);
    return message_of([&] { (void)sampled_loss(activation, at, samples); });
  };
  CHECK(run([](HeadParameters&) {}).empty());
  CHECK(run([](HeadParameters& at) { at.m.resize(2, 3); }) == "sampled_loss: m must be 2 x 2, got 2 x 3");
  CHECK(run([](HeadParameters& at) { at.r.resize(2, 3); }) == "sampled_loss: r must be 2 x 2, got 2 x 3");
  CHECK(run([](HeadParameters& at) { at.b.resize(1); }) ==
        "sampled_loss: b must have one entry a head (2), got 1");
  CHECK(run([](HeadParameters& at) { at.m(1, 0) = INFINITY; }) ==
        "sampled_loss: m must be finite, got inf at (1, 0)");
  CHECK(run([](HeadParameters&) {}, HeadActivation::softmaxv) ==
        "sampled_loss: v of softmaxv must have 2 entries for 2 heads, got 1");
  CHECK(run([](HeadParameters& at) { at = {}; }) ==
        "sampled_loss: heads (rows of m) must be at least 1, got 0");
  CHECK(message_of([] { (void)noise_start(HeadActivation::softmax, 2, 2, -1, 1); }) ==
        "noise_start: eta must be at least 0 and finite, got -1");
}
