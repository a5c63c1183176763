#include "widelimit/specialization/sgd.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/flow.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

Matrix<double> planted() {
  Matrix<double> m(2, 2);
  m << 0.1, 0.25, -0.05, -0.2;
  return m;
}

SgdOptions options_for(Index dimension, double tau, std::uint64_t seed) {
  SgdOptions options;
  options.tokens = 5;
  options.batch = dimension;
  options.steps = std::lround(tau / options.gamma);
  options.seed = seed;
  return options;
}

/// Mean over runs of SGD's order parameters at the end, with standard errors.
struct Means {
  Matrix<double> sum_m = Matrix<double>::Zero(2, 2), square_m = sum_m, sum_S = sum_m, square_S = sum_m;
  double runs = 0;
  void add(const Matrix<double>& m, const Matrix<double>& S) {
    sum_m += m;
    square_m += m.cwiseProduct(m);
    sum_S += S;
    square_S += S.cwiseProduct(S);
    ++runs;
  }
  static double worst(const Matrix<double>& sum, const Matrix<double>& square, double n,
                      const Matrix<double>& expected, double margin) {
    const Matrix<double> mean = sum / n;
    const Matrix<double> error = ((square / n - mean.cwiseProduct(mean)).cwiseMax(0) / (n - 1)).cwiseSqrt();
    return ((mean - expected).cwiseAbs() - 4 * error).maxCoeff() - margin;
  }
};

HeadParameters limit_start(HeadActivation activation) {
  return with_initial_offsets(activation, planted(), Matrix<double>::Identity(2, 2));
}

FlowPoint flow_end(HeadActivation activation, const HeadParameters& start, const SampleSet<float>& samples,
                   double tau, double batch_noise) {
  FlowOptions options;
  options.step = 0.05;
  options.steps = std::lround(tau / options.step);
  options.batch_noise = batch_noise;
  return gradient_flow(activation, start, samples, options).back();
}

}  // namespace

TEST_CASE("sgd: gradients of a batch are the slopes of its loss") {
  numerics::RandomStream random(1);
  for (const HeadActivation activation : all_activations) {
    HeadVectors heads{random_matrix(3, 6, random), random_vector(3, random, 0.5),
                      (random_vector(scale_count(activation, 3), random, 0.2).array() + 1).matrix()};
    TokenBatch batch{4, random_matrix(20 * 4, 6, random), {}};
    for (Index i = 0; i < 20; ++i) batch.eps.push_back(i % 4);
    const BatchLoss loss = batch_loss(activation, heads, batch);
    const auto value = [&] { return batch_loss(activation, heads, batch).loss; };
    const auto check = [&](auto& parameter, const auto& gradient) {
      for (Index i = 0; i < parameter.rows(); ++i)
        for (Index j = 0; j < parameter.cols(); ++j)
          CHECK(std::abs(slope(parameter(i, j), value) - gradient(i, j)) < 1e-8);
    };
    check(heads.k, loss.gradient.k);
    check(heads.b, loss.gradient.b);
    if (has_scale(activation)) check(heads.v, loss.gradient.v);
  }
}

TEST_CASE("sgd: planting sets m and leaves the rest") {
  const SgdStart start = random_start(HeadActivation::softmax, 2, 2, 50, 1, 2);
  const SgdStart changed = plant(start, planted());
  const OrderParameters before = order_parameters(start.heads.k, start.k_star);
  const OrderParameters after = order_parameters(changed.heads.k, changed.k_star);
  CHECK(distance(after.m, planted()) < 1e-14);
  CHECK(distance(after.S, before.S) < 1e-13);
  CHECK(after.p == before.p);

  const GramState gram = random_gram_start(HeadActivation::softmax, 2, 2, 50, 1, 2);
  const GramState other = plant(gram, planted());
  const auto parts = [](const GramState& s) {
    return order_parameters(Matrix<double>(s.gram.topLeftCorner(2, 2)), s.gram.topRightCorner(2, 2),
                            s.gram.bottomRightCorner(2, 2));
  };
  CHECK(parts(other).m == planted());
  CHECK(distance(parts(other).S, parts(gram).S) < 1e-13);
}

TEST_CASE("sgd: random starts have Gram matrices of the right mean and spread") {
  constexpr int runs = 400;
  const double D = 60, eta = 0.5;
  Matrix<double> vectors = Matrix<double>::Zero(3, 3), grams = vectors, squares = vectors;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const SgdStart start = random_start(HeadActivation::softmax, 2, 1, 60, eta, seed);
    Matrix<double> all(3, 60);
    all << start.heads.k, start.k_star;
    vectors += all * all.transpose() / runs;
    const Matrix<double> gram = random_gram_start(HeadActivation::softmax, 2, 1, 60, eta, seed).gram;
    grams += gram / runs;
    squares += gram.cwiseProduct(gram) / runs;
  }
  const Eigen::Vector3d scale(eta, eta, 1);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) {
      const double mean = i == j ? scale[i] * scale[i] : 0;
      const double variance = scale[i] * scale[i] * scale[j] * scale[j] * (i == j ? 2 : 1) / D;
      CHECK(std::abs(vectors(i, j) - mean) < 4.5 * std::sqrt(variance / runs));
      CHECK(std::abs(grams(i, j) - mean) < 4.5 * std::sqrt(variance / runs));
      // The spread of a sample variance of near-normal numbers is sqrt(2 / runs); skewness adds a little.
      CHECK(squares(i, j) - grams(i, j) * grams(i, j) ==
            doctest::Approx(variance).scale(0).epsilon(6 * std::sqrt(2.0 / runs)));
    }
}

TEST_CASE("sgd: vector and Gram form agree on average") {
  const Prior prior = Prior::flip2(2, 2);
  for (const HeadActivation activation : {HeadActivation::softmax1, HeadActivation::bayes}) {
    Means vectors, grams;
    for (std::uint64_t run = 0; run < 24; ++run) {
      const SgdOptions options = options_for(100, 2, 50 + run);
      const SgdPoint a =
          sgd(activation, prior, plant(random_start(activation, 2, 2, 100, 1, run), planted()), options)
              .back();
      const SgdPoint b =
          gram_sgd(activation, prior,
                   plant(random_gram_start(activation, 2, 2, 100, 1, 1000 + run), planted()), options)
              .back();
      vectors.add(a.overlaps.m, a.overlaps.S);
      grams.add(b.overlaps.m, b.overlaps.S);
    }
    CHECK(Means::worst(vectors.sum_m, vectors.square_m, 24, grams.sum_m / 24, 0) < 0.02);
    const Matrix<double> difference = (vectors.sum_S - grams.sum_S) / 24;
    const Matrix<double> mean_a = vectors.sum_S / 24, mean_b = grams.sum_S / 24;
    const Matrix<double> variance =
        (vectors.square_S + grams.square_S) / 24 - mean_a.cwiseProduct(mean_a) - mean_b.cwiseProduct(mean_b);
    CHECK((difference.cwiseAbs() - 4 * (variance / 23).cwiseSqrt()).maxCoeff() < 0);
  }
}

TEST_CASE("sgd: follows the matched flow of its own start") {
  // Spikes of finite D whitened, batch noise included: what is left is SGD's noise of order D^(-1/2) and that
  // of the flow's samples.
  const Prior prior = Prior::flip2(2, 2);
  const double tau = 4;
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    Means differences;
    for (std::uint64_t run = 0; run < 6; ++run) {
      const GramState start = plant(random_gram_start(activation, 2, 2, 500, 1, run), planted());
      const SgdOptions options = options_for(500, tau, 70 + run);
      const std::vector<SgdPoint> points = gram_sgd(activation, prior, start, options);
      const MatchedFlow matched = matched_flow(points.front());
      SampleOptions sample_options;
      sample_options.theta_map = matched.spike_root;
      const auto samples = SampleSet<float>::draw(prior, {5, 2, 20'000}, 90 + run, sample_options);
      const FlowPoint flow = flow_end(activation, matched.start, samples, tau, options.gamma);
      differences.add(points.back().overlaps.m - flow.parameters.m * matched.spike_root,
                      points.back().overlaps.S - flow.S);
    }
    const Matrix<double> zero = Matrix<double>::Zero(2, 2);
    // The margin covers corrections of order L/D to inner products, which are taken as 1 in the limit.
    CHECK(Means::worst(differences.sum_m, differences.square_m, 6, zero, 0.01) < 0);
    CHECK(Means::worst(differences.sum_S, differences.square_S, 6, zero, 0.01) < 0);
  }
}

TEST_CASE("sgd: runs at D = 2000 lie on the flow, all activations [slow]") {
  const Prior prior = Prior::flip2(2, 2);
  const double tau = 8;
  const auto samples = SampleSet<float>::draw(prior, {5, 2, 200'000}, 1);
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    const FlowPoint flow = flow_end(activation, limit_start(activation), samples, tau, 0.02);
    Means means;
    constexpr int runs = 8;
    for (std::uint64_t run = 0; run < runs; ++run) {
      const GramState start = plant(random_gram_start(activation, 2, 2, 2000, 1, 200 + run), planted());
      const SgdPoint end = gram_sgd(activation, prior, start, options_for(2000, tau, 300 + run)).back();
      means.add(end.overlaps.m, end.overlaps.S);
    }
    // The note finds run means within 0.016 of this flow in m (two standard errors); noise of the flow's own
    // samples is 0.003 at n = 2 10^5.
    CHECK(distance(means.sum_m / runs, flow.parameters.m) < 0.03);
    CHECK(Means::worst(means.sum_m, means.square_m, runs, flow.parameters.m, 0.003) < 0);
    CHECK(Means::worst(means.sum_S, means.square_S, runs, flow.S, 0.003) < 0);
  }
}

TEST_CASE("sgd: equal bits for any number of threads, both forms") {
  const Prior prior = Prior::spikes(3, 4);
  const SgdOptions options = options_for(300, 0.2, 5);
  const auto run = [&](int threads) {
    return with_threads(threads, [&] {
      const SgdPoint a =
          sgd(HeadActivation::bayes, prior, random_start(HeadActivation::bayes, 3, 3, 40, 1, 6), options)
              .back();
      const SgdPoint b = gram_sgd(HeadActivation::bayes, prior,
                                  random_gram_start(HeadActivation::bayes, 3, 3, 40, 1, 6), options)
                             .back();
      return std::pair{a.overlaps.q, b.overlaps.q};
    });
  };
  const auto one = run(1), four = run(4);
  CHECK(one.first == four.first);
  CHECK(one.second == four.second);
}

TEST_CASE("sgd: rejections name the field") {
  const Prior prior = Prior::flip2(1, 1);
  const GramState gram = random_gram_start(HeadActivation::softmax, 2, 2, 30, 1, 1);
  const SgdStart start = random_start(HeadActivation::softmax, 2, 2, 30, 1, 1);
  const auto run = [&](const auto& set) {
    SgdOptions options = options_for(8, 0.04, 1);
    GramState state = gram;
    set(options, state);
    return message_of([&] { (void)gram_sgd(HeadActivation::softmax, prior, state, options); });
  };
  CHECK(run([](SgdOptions&, GramState&) {}).empty());
  CHECK(run([](SgdOptions& o, GramState&) { o.gamma = 0; }) ==
        "gram_sgd: gamma must be positive and finite, got 0");
  CHECK(run([](SgdOptions& o, GramState&) { o.batch = 0; }) ==
        "gram_sgd: batch N_b must be at least 1, got 0");
  CHECK(run([](SgdOptions& o, GramState&) { o.tokens = 0; }) ==
        "gram_sgd: tokens L must be at least 1, got 0");
  CHECK(run([](SgdOptions&, GramState& s) { s.dimension = 8; }) ==
        "gram_sgd: dimension D must be at least H + F + L = 9, got 8; use sgd for smaller D");
  CHECK(run([](SgdOptions&, GramState& s) { s.dimension = 9; }).empty());
  CHECK(run([](SgdOptions&, GramState& s) {
          s.gram(0, 1) = s.gram(1, 0) = 9;
        }).find("not positive definite") != std::string::npos);
  SgdOptions options = options_for(8, 0.04, 1);
  CHECK(message_of([&] { (void)sgd(HeadActivation::softmax, Prior::spikes(3, 1), start, options); }) ==
        "sgd: k_star must be 3 x 30, got 2 x 30");
  options.gamma = -1;
  CHECK(message_of([&] { (void)sgd(HeadActivation::softmax, prior, start, options); }) ==
        "sgd: gamma must be positive and finite, got -1");
  CHECK(message_of([] { (void)random_start(HeadActivation::softmax, 2, 2, 0, 1, 1); }) ==
        "random_start: dimension D must be at least 1, got 0");
  CHECK(message_of([] { (void)random_gram_start(HeadActivation::softmax, 2, 2, 3, 1, 1); }) ==
        "random_gram_start: dimension D must be at least 4, got 3");
  numerics::RandomStream random(1);
  const HeadVectors heads = start.heads;
  CHECK(message_of([&] {
          (void)batch_loss(HeadActivation::softmax, heads, {2, Matrix<double>::Zero(4, 29), {0, 1}});
        }) == "batch_loss: X must be 4 x 30, got 4 x 29");
  CHECK(message_of([&] {
          (void)batch_loss(HeadActivation::softmax, heads, {2, Matrix<double>::Zero(4, 30), {0, 2}});
        }) == "batch_loss: eps must lie in [0, 2), got 2");
  CHECK(message_of([&] {
          (void)batch_loss(HeadActivation::softmax, heads, {2, {}, {}});
        }) == "batch_loss: sequences N must be at least 1, got 0");
}
