// The control variate of sampled softmax: its expectation, and what it leaves of the errors.
#include "layers/softmax_control.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <array>
#include <cmath>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::layers {
namespace {

Matrix<double> random_matrix(unsigned seed, Index rows, Index columns) {
  const auto numbers = testing::random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

/// E[body(z)] for independent normal z, exact for polynomials of degree 5 in each.
template <typename Body>
double expectation(Index dimensions, const Body& body) {
  constexpr std::array<double, 3> weights{2.0 / 3, 1.0 / 6, 1.0 / 6};
  const std::array<double, 3> nodes{0, std::sqrt(3), -std::sqrt(3)};
  Index count = 1;
  for (Index k = 0; k < dimensions; ++k) count *= 3;
  double sum = 0;
  for (Index number = 0; number < count; ++number) {
    Vector<double> z(dimensions);
    double weight = 1;
    for (Index k = 0, rest = number; k < dimensions; ++k, rest /= 3) {
      z(k) = nodes[static_cast<std::size_t>(rest % 3)];
      weight *= weights[static_cast<std::size_t>(rest % 3)];
    }
    sum += weight * body(z);
  }
  return sum;
}

TEST_CASE("SoftmaxControl: the expectation of its products, against quadrature over the logits of two rows") {
  constexpr Index d = 3, e = 2;
  constexpr double scale = 0.8;
  const Matrix<double> x = random_matrix(1, d + e, 7), values = random_matrix(2, d, e);
  const Matrix<double> queries = (x * x.transpose() / 7).array() + 0.3,
                       keys = (x * x.transpose() / 7).array() + 0.1;
  const LogitCovariance left{queries.diagonal().head(d), keys.topLeftCorner(d, d)},
      right{queries.diagonal().tail(e), keys.bottomRightCorner(e, e)};
  const Matrix<double> cross_queries = queries.topRightCorner(d, e), cross_keys = keys.topRightCorner(d, e);
  const SoftmaxControl control(left, right, cross_queries, cross_keys, values, scale);
  CHECK(control.is_useful());
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < e; ++b) {
      // The logits of row a, then those of row b.
      Matrix<double> covariance = keys;
      covariance.topLeftCorner(d, d) *= queries(a, a);
      covariance.bottomRightCorner(e, e) *= queries(d + b, d + b);
      covariance.topRightCorner(d, e) *= queries(a, d + b);
      covariance.bottomLeftCorner(e, d) *= queries(a, d + b);
      const Matrix<double> factor = Eigen::LLT<Matrix<double>>(covariance).matrixL();
      const double expected = expectation(d + e, [&](const Vector<double>& z) {
        const Vector<double> logits = factor * z;
        const Matrix<double> of_left = control.weights(logits.head(d).transpose()),
                             of_right = control.weights(logits.tail(e).transpose());
        return (of_left * values * of_right.transpose())(0, 0);
      });
      CHECK(control.expectation(a, b) == doctest::Approx(expected).epsilon(1e-12));
    }
}

TEST_CASE("SoftmaxControl: weights agree with softmax to second order, and add up to 1") {
  const Matrix<double> logits = random_matrix(3, 4, 5), keys = random_matrix(4, 5, 5);
  const Matrix<double> covariance = keys * keys.transpose();
  const LogitCovariance side{Vector<double>::Ones(5), covariance};
  double last = 0;
  for (const double scale : {0.02, 0.01}) {
    const SoftmaxControl control(side, side, covariance, covariance, covariance, scale);
    const Matrix<double> weights = control.weights(logits);
    CHECK((weights.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-14);
    Matrix<double> softmax = (scale * logits).array().exp();
    for (Index a = 0; a < 4; ++a) softmax.row(a) /= softmax.row(a).sum();
    const double error = (weights - softmax).cwiseAbs().maxCoeff();
    // Half the logits, an eighth of the error.
    if (last > 0) CHECK(last / error == doctest::Approx(8).epsilon(0.05));
    last = error;
  }
}

TEST_CASE("SoftmaxControl: none of weights that are sharp") {
  const Matrix<double> keys = random_matrix(5, 4, 9), covariance = keys * keys.transpose() / 9;
  const LogitCovariance side{covariance.diagonal(), covariance};
  CHECK(SoftmaxControl(side, side, covariance, covariance, covariance, 1).is_useful());
  CHECK_FALSE(SoftmaxControl(side, side, covariance, covariance, covariance, 10).is_useful());
  CHECK_FALSE(SoftmaxControl(side, side, covariance, covariance, covariance, 1e200).is_useful());
}

/// Without control: rotary positions of frequency 0, which turn nothing.
GramResult<double> sampled(const xt::xarray<double>& x, bool with_control) {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.samples = 4096;
  if (!with_control) options.sequence.rotary = RotaryPositions{{0}};
  return gram<double>(Network({dense(), attention(options), global_average_pool()}), x);
}

TEST_CASE("sampled softmax: the control leaves less than a tenth of the variance, and the same means") {
  // Tokens of variance 1, of which those of an input share half, as tokens of data do.
  xt::xarray<double> x = testing::random_inputs(6, {4, 10, 30});
  const auto common = testing::random_inputs(7, {4, 30});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t a = 0; a < 10; ++a)
      for (std::size_t c = 0; c < 30; ++c) x(i, a, c) = (x(i, a, c) + common(i, c)) / std::sqrt(2);
  const GramResult<double> controlled = sampled(x, true), plain = sampled(x, false);
  CHECK(controlled.nngp_error.squaredNorm() < 0.1 * plain.nngp_error.squaredNorm());
  CHECK(controlled.ntk_error.squaredNorm() < 0.1 * plain.ntk_error.squaredNorm());
  for (Index i = 0; i < 4; ++i)
    for (Index j = i; j < 4; ++j) {
      CHECK(std::abs(controlled.nngp(i, j) - plain.nngp(i, j)) <
            4.5 * std::hypot(controlled.nngp_error(i, j), plain.nngp_error(i, j)));
      CHECK(std::abs(controlled.ntk(i, j) - plain.ntk(i, j)) <
            4.5 * std::hypot(controlled.ntk_error(i, j), plain.ntk_error(i, j)));
    }
}

}  // namespace
}  // namespace widelimit::layers
