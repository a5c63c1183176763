#include "widelimit/propagation/block_map.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stop_token>
#include <vector>

#include "propagation/parameters_with.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using widelimit::propagation_test::parameters_with;

namespace {

Matrix<double> equal_gram(Index tokens, const TokenState& state) {
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, state.p());
  gram.diagonal().setConstant(state.q);
  return gram;
}

Matrix<double> random_gram(Index tokens, Index width, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  Matrix<double> x(tokens, width);
  for (Index k = 0; k < x.size(); ++k) x.data()[k] = stream.normal();
  x.row(0) *= 3;
  return x * x.transpose() / static_cast<double>(width);
}

/// Attention outputs by the definition: sums over all pairs of keys, for each pair of queries.
Matrix<double> outputs_by_definition(const Matrix<double>& cosines, double sigma_A, AttentionMask mask) {
  const Index n = cosines.rows();
  Matrix<double> result(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      double numerator = 0, denominator = 0;
      for (Index k = 0; k < (mask == AttentionMask::causal ? i + 1 : n); ++k)
        for (Index l = 0; l < (mask == AttentionMask::causal ? j + 1 : n); ++l) {
          const double weight = std::exp(sigma_A * sigma_A * cosines(i, j) * cosines(k, l));
          numerator += weight * cosines(k, l);
          denominator += weight;
        }
      result(i, j) = numerator / denominator;
    }
  return result;
}

Matrix<double> cosines_of(const Matrix<double>& gram) {
  const Vector<double> scale = gram.diagonal().cwiseSqrt().cwiseInverse();
  Matrix<double> cosines = scale.asDiagonal() * gram * scale.asDiagonal();
  cosines.diagonal().setOnes();
  return cosines;
}

}  // namespace

TEST_CASE("attention: the note's table") {
  CHECK(attention_core(256, 1, 1).q == Approx(0.010547493213).scale(0).epsilon(1e-10));
  CHECK(attention_core(256, 1, 1).p() == Approx(0.00390625).scale(0).epsilon(1e-10));
  CHECK(attention_core(256, 1, 0.5).q == Approx(0.503212019258).scale(0).epsilon(1e-11));
  CHECK(attention_core(256, 1, 0.5).p() == Approx(0.502505082817).scale(0).epsilon(1e-11));
  CHECK(attention_core(16, 2, 0.7).q == Approx(0.666079887097).scale(0).epsilon(1e-11));
  CHECK(attention_core(16, 2, 0.7).p() == Approx(0.393637244228).scale(0).epsilon(1e-11));
  const TokenState state = BlockMap(parameters_with(0.5, 0.5, 1, 64)).attention(TokenState{0.8, 0.2});
  CHECK(state.q == Approx(0.788748390841).scale(0).epsilon(1e-11));
  CHECK(state.p() == Approx(0.638674175626).scale(0).epsilon(1e-11));
  const Matrix<double> cosines{{1, 0.5, -0.2}, {0.5, 1, 0.3}, {-0.2, 0.3, 1}};
  CHECK(softmax_second_moment(cosines, 1, 0, 1, 2, 0) == Approx(0.109930199378).scale(0).epsilon(1e-11));
}

TEST_CASE("attention: second moments of the weights sum to one over the keys") {
  const Matrix<double> cosines{{1, 0.5, -0.2}, {0.5, 1, 0.3}, {-0.2, 0.3, 1}};
  for (Index i = 0; i < 3; ++i)
    for (Index k = 0; k < 3; ++k) {
      double sum = 0;
      for (Index j = 0; j < 3; ++j)
        for (Index l = 0; l < 3; ++l) sum += softmax_second_moment(cosines, 1.4, i, j, k, l);
      CHECK(sum == Approx(1).scale(0).epsilon(1e-13));
    }
}

TEST_CASE("attention: near collapse its gap is cubic in the angle, to full precision") {
  for (const double n : {2.0, 64.0}) {
    const double gap = 1e-6, sigma_A = 1.3;
    const double expected = sigma_A * sigma_A * (n - 1) / (n * n) * gap * gap * gap;
    // The next order is relative e (sigma_A^2 (...)).
    CHECK(attention_core(n, sigma_A, gap).gap == Approx(expected).scale(0).epsilon(1e-5));
  }
}

TEST_CASE("attention: large scores leave every token alone, none average them") {
  CHECK(attention_core(8, 30, 0.8).q == Approx(1).scale(0).epsilon(1e-12));
  CHECK(attention_core(8, 0, 0.8).gap == 0);
  CHECK(attention_core(8, 0, 0.8).q == Approx(1 - 0.8 * 7 / 8.0).scale(0).epsilon(1e-14));
}

TEST_CASE("attention: any Gram matrix, directly and by interpolation, agrees with the definition") {
  for (const Index tokens : {4, 9})  // 6 and 36 different cosines: below and above the switch at 16
    for (const double sigma_A : {0.7, 2.5})
      for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
        const Matrix<double> cosines = cosines_of(random_gram(tokens, 12, 5));
        const Matrix<double> computed = attention_outputs(cosines, sigma_A, mask);
        const Matrix<double> expected = outputs_by_definition(cosines, sigma_A, mask);
        CHECK((computed - expected).cwiseAbs().maxCoeff() < 1e-12);
      }
}

TEST_CASE("attention: the first token under a causal mask sees itself") {
  const BlockMap map(parameters_with(0.6, 0.3, 1, 4));
  const Matrix<double> gram = random_gram(5, 20, 3);
  CHECK(map.attention(gram, AttentionMask::causal)(0, 0) ==
        Approx(0.64 * gram(0, 0) + 0.36).scale(0).epsilon(1e-13));
}

TEST_CASE("block: equal tokens as numbers and as a Gram matrix") {
  for (const double cosine : {-0.1, 0.0, 0.5, 0.98}) {
    Parameters parameters = parameters_with(0.6, 0.4, 1.7, 6);
    parameters.sigma_A = 1.5;
    const BlockMap map(parameters);
    const TokenState start = TokenState::from_cosine(1.4, cosine), end = map.block(start);
    const Matrix<double> gram = map.block(equal_gram(6, start));
    CHECK((gram - equal_gram(6, end)).cwiseAbs().maxCoeff() < 1e-13);
  }
}

TEST_CASE("block: trajectories of Gram matrices, of rank below the number of tokens too") {
  const BlockMap map(parameters_with(0.7, 0.6, 3, 8));
  for (const std::uint64_t seed : {1, 2, 3})
    for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
      const auto grams = map.trajectory(random_gram(8, 3, seed), 6, mask);
      REQUIRE(grams.size() == 7);
      CHECK(grams[6] == map.block(grams[5], mask));
      CHECK(grams[6] == grams[6].transpose());
      CHECK(cosines_of(grams[6]).cwiseAbs().maxCoeff() <= 1 + 1e-12);
    }
}

TEST_CASE("block: the equality of tokens is restored from any start in the ordered phase") {
  const BlockMap map(parameters_with(0.5, 0.5, 1, 8));
  const Matrix<double> end = map.trajectory(random_gram(8, 20, 7), 60).back();
  CHECK(cosines_of(end).minCoeff() > 1 - 1e-6);
}

TEST_CASE("block: the MLP of the note's table") {
  const TokenState state = BlockMap(parameters_with(0.5, 0.5, 2.25, 256)).mlp(TokenState{1, 0.5});
  CHECK(state.q == Approx(0.902361291115).scale(0).epsilon(1e-11));
  CHECK(state.p() == Approx(0.431155758323).scale(0).epsilon(1e-11));
  Parameters parameters = parameters_with(0.5, 0.7, 2, 256);
  parameters.sigma_out = OutputGain::shared();
  const TokenState shared = BlockMap(parameters).mlp(TokenState{0.8, 0.6});
  CHECK(shared.q == Approx(1.5087372489).scale(0).epsilon(1e-10));
  CHECK(shared.p() == Approx(0.304883538389).scale(0).epsilon(1e-11));
}

TEST_CASE("block: sixteen of them, the note's table") {
  const double alpha = 1 / std::sqrt(8.0);
  const auto states = BlockMap(parameters_with(alpha, alpha, 5, 256)).trajectory(TokenState{1, 1}, 16);
  CHECK(states.size() == 17);
  CHECK(states[16].q == Approx(0.465741176987).scale(0).epsilon(1e-8));
  CHECK(states[16].cosine() == Approx(0.0435023972189).scale(0).epsilon(1e-8));
}

TEST_CASE("block: Jacobians are the derivatives of the maps") {
  Parameters parameters = parameters_with(0.6, 0.7, 2.1, 12);
  parameters.sigma_A = 1.6;
  const BlockMap map(parameters);
  for (const double gap : {0.02, 0.3, 0.9}) {
    const TokenState state{1.2, gap};
    const StateJacobian jacobian = map.block_jacobian(state);
    const double step = 1e-5;
    const auto difference = [&](double dq, double dgap) {
      const TokenState a = map.block(TokenState{state.q + dq, state.gap + dgap});
      const TokenState b = map.block(TokenState{state.q - dq, state.gap - dgap});
      return Eigen::Vector2d{(a.q - b.q) / (2 * step), (a.gap - b.gap) / (2 * step)};
    };
    CHECK((difference(step, 0) - jacobian.col(0)).cwiseAbs().maxCoeff() < 1e-7);
    CHECK((difference(0, step) - jacobian.col(1)).cwiseAbs().maxCoeff() < 1e-7);
  }
}

TEST_CASE("block: wrong arguments are named") {
  const BlockMap map(parameters_with(0.5, 0.5, 1, 4));
  const auto wrong = [](Parameters parameters, const char* text) {
    CHECK_THROWS_WITH_AS((BlockMap(parameters)), text, ArgumentError);
  };
  wrong(parameters_with(1.2, 0.5, 1, 4), "MlpMap: alpha_A must lie in [0, 1], got 1.2");
  wrong(parameters_with(0.5, -0.1, 1, 4), "MlpMap: alpha_M must lie in [0, 1], got -0.1");
  wrong(parameters_with(0.5, 0.5, 1, 1), "MlpMap: tokens must be at least 2, got 1");
  wrong(parameters_with(0, 0, 1, 4),
        "MlpMap: alpha_A and alpha_M must not both be 0: then no block changes anything and there is no "
        "fixed point");
  CHECK_THROWS_WITH_AS((void)map.block(TokenState{0, 0}),
                       "BlockMap::attention: q must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)map.block(TokenState{1, 1.4}),
                       doctest::Contains("the cosine must lie in [-1 / (n - 1), 1]"), ArgumentError);
  CHECK_NOTHROW((void)map.block(TokenState{1, 4.0 / 3}));  // the least cosine four tokens can have
  CHECK_THROWS_WITH_AS((void)map.trajectory(TokenState{1, 0}, -1),
                       "BlockMap::trajectory: blocks must be at least 0, got -1", ArgumentError);
  Matrix<double> gram = Matrix<double>::Identity(3, 3);
  gram(0, 1) = 0.2;
  CHECK_THROWS_WITH_AS((void)map.mlp(gram),
                       "BlockMap::mlp: gram must be symmetric, got 0 at (1, 0) and 0.2 at (0, 1)",
                       ArgumentError);
  gram(1, 0) = 0.2;
  gram(0, 1) = gram(1, 0) = 1.1;
  CHECK_THROWS_WITH_AS((void)map.attention(gram),
                       "BlockMap::attention: the cosine of tokens 0 and 1 must lie in [-1, 1], got 1.1",
                       ArgumentError);
  gram = Matrix<double>::Constant(3, 3, -0.6);
  gram.diagonal().setOnes();
  CHECK_NOTHROW((void)map.attention(gram));
  CHECK_THROWS_WITH_AS((void)map.trajectory(gram, 1), doctest::Contains("gram must be positive semidefinite"),
                       ArgumentError);
  gram.setZero();
  CHECK_THROWS_WITH_AS((void)map.block(gram),
                       "BlockMap::attention: gram must have a positive diagonal, got 0 at token 0",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)softmax_second_moment(Matrix<double>::Identity(2, 2), 1, 0, 2, 0, 0),
                       "softmax_second_moment: key_j must lie in [0, 2), got 2", ArgumentError);
  CHECK_THROWS_WITH_AS((void)attention_core(16, -1, 0.5),
                       "attention_core: sigma_A must be at least 0 and finite, got -1", ArgumentError);
}

TEST_CASE("trajectories under a causal mask: means of whole Gram matrices, with progress and a stop") {
  Parameters parameters;
  parameters.tokens = 60;
  const BlockMap map(parameters);
  const TokenState start = TokenState::from_cosine(1.2, 0.3);
  const Matrix<double> gram = equal_gram(60, start);
  std::vector<std::ptrdiff_t> done;
  RunControl run;
  run.progress = [&](std::ptrdiff_t block, std::ptrdiff_t all) {
    CHECK(all == 3);
    done.push_back(block);
  };
  const auto means = mean_trajectory(map, start, 3, AttentionMask::causal, run);
  CHECK(done == std::vector<std::ptrdiff_t>{1, 2, 3});
  const auto grams = map.trajectory(gram, 3, AttentionMask::causal);
  REQUIRE(means.size() == 4);
  for (std::size_t l = 0; l < 4; ++l) {
    CHECK(means[l].q == doctest::Approx(grams[l].diagonal().mean()).epsilon(1e-12));
    CHECK(means[l].p() == doctest::Approx((grams[l].sum() - grams[l].trace()) / (60 * 59)).epsilon(1e-12));
  }
  std::stop_source source;
  run.stop = source.get_token();
  run.progress = [&](std::ptrdiff_t, std::ptrdiff_t) { source.request_stop(); };
  CHECK_THROWS_AS(mean_trajectory(map, start, 3, AttentionMask::causal, run), Cancelled);
}

TEST_CASE("MLP of many different cosines: entries are those of pairs alone") {
  Parameters parameters;
  parameters.tokens = 60;
  parameters.sigma_w = 2;
  const BlockMap map(parameters);
  Matrix<double> gram = equal_gram(60, TokenState::from_cosine(1.2, 0.25));
  // After two blocks under a causal mask nearly all of the 1770 cosines differ.
  gram = map.trajectory(gram, 2, AttentionMask::causal).back();
  const Matrix<double> all = map.mlp(gram);
  for (Index i = 0; i < 60; i += 7)
    for (Index j = 0; j < i; j += 5) {
      const Matrix<double> pair{{gram(i, i), gram(i, j)}, {gram(j, i), gram(j, j)}};
      const Matrix<double> alone = map.mlp(pair);
      CHECK(all(i, j) == doctest::Approx(alone(0, 1)).epsilon(1e-11));
      CHECK(all(i, i) == doctest::Approx(alone(0, 0)).epsilon(1e-12));
    }
}
