#include "widelimit/propagation/finite_transformer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

Matrix<double> normals(Index rows, Index columns, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  Matrix<double> matrix(rows, columns);
  for (Index k = 0; k < matrix.size(); ++k) matrix.data()[k] = stream.normal();
  return matrix;
}

Parameters small_parameters() {
  Parameters parameters;
  parameters.tokens = 6;
  parameters.sigma_A = 1.5;
  parameters.alpha_A = 0.6;
  parameters.alpha_M = 0.5;
  parameters.sigma_w = 1.3;
  parameters.sigma_out = OutputGain::shared();
  return parameters;
}

}  // namespace

TEST_CASE("finite transformer: one block is the definition written out") {
  const Parameters parameters = small_parameters();
  const Index n = 6, d = 8;
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    const FiniteTransformer transformer(parameters, d, 1, mask, 3);
    const BlockWeights& w = transformer.weights()[0];
    const Eigen::MatrixXd x = normals(n, d, 4);
    const auto normalised = [&](const Eigen::MatrixXd& tokens) {
      Eigen::MatrixXd y = tokens;
      for (Index i = 0; i < n; ++i) y.row(i) *= std::sqrt(d) / y.row(i).norm();
      return y;
    };
    const Eigen::MatrixXd y = normalised(x);
    Eigen::MatrixXd attention = Eigen::MatrixXd::Zero(n, d);
    for (Index i = 0; i < n; ++i) {
      double sum = 0;
      Eigen::VectorXd average = Eigen::VectorXd::Zero(d);
      for (Index j = 0; j < (mask == AttentionMask::causal ? i + 1 : n); ++j) {
        const double score = (w.query * y.row(i).transpose()).dot(w.key * y.row(j).transpose());
        const double weight = std::exp(score / std::sqrt(d));
        sum += weight;
        average += weight * y.row(j).transpose();
      }
      attention.row(i) = (w.value * average / sum).transpose();
    }
    const Eigen::MatrixXd middle = 0.8 * x + 0.6 * attention;
    const Eigen::MatrixXd z = normalised(middle);
    const auto tanh = [](double u) { return std::tanh(u); };
    const Eigen::MatrixXd hidden = (z * w.mlp[0].transpose()).unaryExpr(tanh);
    const Eigen::MatrixXd output = (hidden * w.mlp[1].transpose()).unaryExpr(tanh) * w.mlp[2].transpose();
    const Eigen::MatrixXd expected = std::sqrt(0.75) * middle + 0.5 * output;
    CHECK((transformer.forward(x) - expected).cwiseAbs().maxCoeff() < 1e-12);
    CHECK((transformer.traced_forward(x).output - expected).cwiseAbs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("finite transformer: gradients against central differences, tokens and every weight") {
  const Index n = 6, d = 8, depth = 2;
  const double step = 1e-6;
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    FiniteTransformer transformer(small_parameters(), d, depth, mask, 7);
    const Matrix<double> x = normals(n, d, 1), direction = normals(n, d, 2);
    const auto loss = [&](const Matrix<double>& tokens) {
      return transformer.forward(tokens).cwiseProduct(direction).sum();
    };
    const ForwardTrace trace = transformer.traced_forward(x);
    auto weight_gradients = transformer.zero_gradients();
    const Matrix<double> gradient = transformer.backward(trace, direction, weight_gradients);
    CHECK((transformer.input_gradient(trace, direction).gradient() - gradient).cwiseAbs().maxCoeff() < 1e-12);
    for (Index k = 0; k < x.size(); ++k) {
      Matrix<double> above = x, below = x;
      above.data()[k] += step;
      below.data()[k] -= step;
      CHECK(std::abs((loss(above) - loss(below)) / (2 * step) - gradient.data()[k]) < 1e-7);
    }
    double worst = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(depth); ++t) {
      std::vector<std::pair<Matrix<double>*, const Matrix<double>*>> matrices;
      BlockWeights& weights = transformer.weights()[t];
      const BlockWeights& gradients = weight_gradients[t];
      matrices.emplace_back(&weights.query, &gradients.query);
      matrices.emplace_back(&weights.key, &gradients.key);
      matrices.emplace_back(&weights.value, &gradients.value);
      for (std::size_t k = 0; k < weights.mlp.size(); ++k)
        matrices.emplace_back(&weights.mlp[k], &gradients.mlp[k]);
      for (const auto& [matrix, expected] : matrices)
        for (Index k = 0; k < matrix->size(); ++k) {
          const double kept = matrix->data()[k];
          matrix->data()[k] = kept + step;
          const double above = loss(x);
          matrix->data()[k] = kept - step;
          const double below = loss(x);
          matrix->data()[k] = kept;
          worst = std::max(worst, std::abs((above - below) / (2 * step) - expected->data()[k]));
        }
    }
    CHECK(worst < 1e-7);
  }
}

TEST_CASE("finite transformer: a causal mask hides later tokens") {
  const FiniteTransformer transformer(small_parameters(), 8, 3, AttentionMask::causal, 1);
  Matrix<double> x = normals(6, 8, 5);
  const Matrix<double> before = transformer.forward(x);
  x.row(4) *= -2;
  const Matrix<double> after = transformer.forward(x);
  CHECK((after.topRows(4) - before.topRows(4)).cwiseAbs().maxCoeff() == 0);
  CHECK((after.bottomRows(2) - before.bottomRows(2)).cwiseAbs().maxCoeff() > 1e-3);
}

TEST_CASE("finite transformer: weights have the stated variances, seeds and depths") {
  Parameters parameters = small_parameters();
  parameters.sigma_A = 2;
  const Index d = 64;
  const FiniteTransformer transformer(parameters, d, 2, AttentionMask::full, 9, 5);
  const BlockWeights& w = transformer.weights()[1];
  const auto scaled_variance = [&](const Matrix<double>& matrix) {
    return matrix.squaredNorm() / static_cast<double>(d);
  };
  // 4096 entries: relative standard error sqrt(2 / 4096) = 0.022.
  const double band = 5 * 0.022;
  CHECK(scaled_variance(w.query) == Approx(2).scale(0).epsilon(band));
  CHECK(scaled_variance(w.key) == Approx(2).scale(0).epsilon(band));
  CHECK(scaled_variance(w.value) == Approx(1).scale(0).epsilon(band));
  REQUIRE(w.mlp.size() == 3);
  for (const Matrix<double>& matrix : w.mlp)
    CHECK(scaled_variance(matrix) == Approx(1.69).scale(0).epsilon(band));
  parameters.sigma_out = OutputGain::unit();
  const FiniteTransformer again(parameters, d, 1, AttentionMask::full, 9, 5);
  CHECK(again.weights()[0].query == transformer.weights()[0].query);
  CHECK(scaled_variance(again.weights()[0].mlp[2]) == Approx(1).scale(0).epsilon(band));
  const FiniteTransformer other(parameters, d, 1, AttentionMask::full, 9, 6);
  CHECK(other.weights()[0].query != again.weights()[0].query);
}

TEST_CASE("finite transformer: wrong arguments are named") {
  const Parameters parameters = small_parameters();
  CHECK_THROWS_WITH_AS((FiniteTransformer(parameters, 0, 1, AttentionMask::full, 0)),
                       "FiniteTransformer: width must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((FiniteTransformer(parameters, 4, 0, AttentionMask::full, 0)),
                       "FiniteTransformer: depth must be at least 1, got 0", ArgumentError);
  const FiniteTransformer transformer(parameters, 4, 2, AttentionMask::full, 0);
  CHECK_THROWS_WITH_AS((void)transformer.forward(normals(3, 5, 1)),
                       "FiniteTransformer::forward: tokens must be [n, 4], got [3, 5]", ArgumentError);
  Matrix<double> x = normals(3, 4, 1);
  const ForwardTrace trace = transformer.traced_forward(x);
  x.row(1).setZero();
  CHECK_THROWS_WITH_AS((void)transformer.forward(x), doctest::Contains("token 1 must be finite and not 0"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)transformer.input_gradient(trace, normals(2, 4, 1)),
                       doctest::Contains("output_gradient must be [3, 4], got [2, 4]"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)transformer.input_gradient(trace, Matrix<double>::Zero(3, 4)),
                       doctest::Contains("the gradient must not vanish"), NumericalError);
}
