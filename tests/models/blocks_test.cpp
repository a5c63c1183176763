#include "widelimit/models/blocks.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

using namespace widelimit;

namespace {

constexpr Index positions = 4;
constexpr Index channels = 3;

/// Two sequences, the second one shorter in norm.
xt::xarray<double> two_sequences() {
  xt::xarray<double> x = xt::xarray<double>::from_shape({2, positions, channels});
  double phase = 0;
  for (double& value : x) value = std::cos(phase += 1.3);
  for (std::size_t i = x.size() / 2; i < x.size(); ++i) x.flat(i) *= 0.5;
  return x;
}

struct Covariance {
  Eigen::MatrixXd k;
  Eigen::MatrixXd t;
};

/// Covariances of a pair and of both inputs with themselves.
struct PairState {
  Covariance pair, left, right;

  template <typename Map>
  [[nodiscard]] PairState mapped(const Map& map) const {
    return {map(pair, left, right), map(left, left, left), map(right, right, right)};
  }
};

/// After a dense layer of weight variance 1: K = T = x x'^T / C.
PairState behind_dense(const xt::xarray<double>& x) {
  const Eigen::Map<const Matrix<double>> a(x.data(), positions, channels);
  const Eigen::Map<const Matrix<double>> b(x.data() + positions * channels, positions, channels);
  const auto product = [](const auto& left, const auto& right) -> Covariance {
    const Eigen::MatrixXd k = left * right.transpose() / channels;
    return {k, k};
  };
  return {product(a, b), product(a, a), product(b, b)};
}

Covariance normed(const Covariance& pair, const Covariance& left, const Covariance& right) {
  constexpr double epsilon = 1e-12;  // that of the layers
  const Eigen::VectorXd p = (left.k.diagonal().array() + epsilon).rsqrt();
  const Eigen::VectorXd q = (right.k.diagonal().array() + epsilon).rsqrt();
  return {p.asDiagonal() * pair.k * q.asDiagonal(), p.asDiagonal() * pair.t * q.asDiagonal()};
}

/// The kernels of `block` between dense layers: dense, block, flatten, dense.
GramResult<double> kernels_of(const Layers& block, const xt::xarray<double>& x = two_sequences()) {
  Layers layers{layers::dense()};
  layers.insert(layers.end(), block.begin(), block.end());
  layers.push_back(layers::flatten());
  layers.push_back(layers::dense());
  return gram<double>(Network(layers), x);
}

void check_readout(const Layers& block, const Covariance& expected) {
  const auto result = kernels_of(block);
  const double k = expected.k.diagonal().mean(), t = expected.t.diagonal().mean();
  CHECK(result.nngp(0, 1) == doctest::Approx(k).epsilon(1e-11).scale(0));
  CHECK(result.ntk(0, 1) == doctest::Approx(k + t).epsilon(1e-11).scale(0));
}

}  // namespace

TEST_CASE("residual attention: alpha K + (1 - alpha) R K R^T, written out") {
  const double alpha = 0.3, rho = 0.7, phi = 1.1;
  Eigen::MatrixXd r(positions, positions);
  for (Index i = 0; i < positions; ++i)
    for (Index j = 0; j < positions; ++j) {
      const double distance = static_cast<double>(i - j) / positions;
      r(i, j) = rho * std::exp(-phi * distance * distance);
    }
  const Covariance pair = behind_dense(two_sequences()).pair;
  const Eigen::MatrixXd rkr = r * pair.k * r.transpose(), rtr = r * pair.t * r.transpose();
  const Covariance expected{alpha * pair.k + (1 - alpha) * rkr,
                            alpha * pair.t + (1 - alpha) * (rtr + 2 * rkr)};
  check_readout(models::residual_attention({.skip_share = alpha, .positions = {.rho = rho, .phi = phi}}),
                expected);
}

TEST_CASE("residual attention: rho is the variance of R, or on request its mean row sum") {
  const double phi = 1.1;
  double sum = 0;
  for (Index i = 0; i < positions; ++i)
    for (Index j = 0; j < positions; ++j)
      sum += std::exp(-phi * std::pow(static_cast<double>(i - j) / positions, 2));
  const double mean_row_sum = sum / positions;
  for (const double rho : {0.0, 0.7, 1.0}) {
    const auto relative =
        kernels_of(models::residual_attention({.skip_share = 0.3,
                                               .positions = {.rho = rho, .phi = phi},
                                               .scale = layers::PositionScale::mean_row_sum}));
    const auto absolute = kernels_of(models::residual_attention(
        {.skip_share = 0.3, .positions = {.rho = rho / mean_row_sum, .phi = phi}}));
    CHECK((relative.nngp - absolute.nngp).cwiseAbs().maxCoeff() < 1e-14);
    CHECK((relative.ntk - absolute.ntk).cwiseAbs().maxCoeff() < 1e-14);
  }
}

TEST_CASE("residual attention: what is constant over positions keeps its variance, whatever alpha is") {
  // phi = 0: R averages over all positions.
  xt::xarray<double> x = two_sequences();
  for (std::size_t i = 0; i < x.size(); ++i)
    x.flat(i) = x.flat(i / (positions * channels) * positions * channels);
  const auto expected = kernels_of({}, x);
  for (const double alpha : {0.0, 0.01, 0.5, 0.99}) {
    const auto actual = kernels_of(
        models::residual_attention(
            {.skip_share = alpha, .positions = {.phi = 0}, .scale = layers::PositionScale::mean_row_sum}),
        x);
    CHECK((actual.nngp - expected.nngp).cwiseAbs().maxCoeff() < 1e-14);
  }
}

TEST_CASE("residual attention: alpha = 1 is the identity") {
  const auto with = kernels_of(models::residual_attention({.skip_share = 1}));
  const auto without = kernels_of({});
  CHECK((with.nngp - without.nngp).cwiseAbs().maxCoeff() < 1e-15);
  CHECK((with.ntk - without.ntk).cwiseAbs().maxCoeff() < 1e-15);
}

TEST_CASE("transformer block: both branches, written out for attention that averages over all positions") {
  models::TransformerBlockOptions options;
  options.attention.query_key_std = 0;
  options.attention.output_value_variance = 1.5;
  options.activation = layers::identity();
  options.weight_variance = 1.7;
  options.bias_variance = 0.2;
  options.output_weight_variance = 0.6;
  options.skip_scale = 0.9;
  options.attention_scale = 0.8;
  options.dense_scale = 0.5;
  const double skip = 0.81, attention = 0.64, dense = 0.25;

  const auto attended = [&](const Covariance& pair, const Covariance& left,
                            const Covariance& right) -> Covariance {
    const Covariance n = normed(pair, left, right);
    const double s = 1.5 * n.k.mean(), t = 1.5 * n.t.mean() + 2 * s;
    return {(skip * pair.k).array() + attention * s, (skip * pair.t).array() + attention * t};
  };
  const auto transformed = [&](const Covariance& pair, const Covariance& left,
                               const Covariance& right) -> Covariance {
    const Covariance n = normed(pair, left, right);
    const Eigen::MatrixXd k1 = (1.7 * n.k).array() + 0.2, t1 = k1 + 1.7 * n.t;
    const Eigen::MatrixXd k2 = 0.6 * k1, t2 = k2 + 0.6 * t1;
    return {skip * pair.k + dense * k2, skip * pair.t + dense * t2};
  };
  check_readout(models::transformer_block(options),
                behind_dense(two_sequences()).mapped(attended).mapped(transformed).pair);
}

TEST_CASE("decoder block: both branches, written out for attention that averages over what it sees") {
  models::DecoderBlockOptions options;
  options.attention.query_key_std = 0;
  options.attention.output_value_variance = 1.5;
  options.mlp = {.activation = layers::identity(),
                 .gate_weight_variance = 1.7,
                 .gate_bias_variance = 0.2,
                 .value_weight_variance = 0.8,
                 .output_weight_variance = 0.6};
  options.skip_scale = 0.9;
  options.attention_scale = 0.8;
  options.mlp_scale = 0.5;
  const double skip = 0.81, attention = 0.64, mlp = 0.25;
  Eigen::MatrixXd average = Eigen::MatrixXd::Zero(positions, positions);
  for (Index a = 0; a < positions; ++a)
    average.row(a).head(a + 1).setConstant(1 / static_cast<double>(a + 1));

  const auto attended = [&](const Covariance& pair, const Covariance& left,
                            const Covariance& right) -> Covariance {
    const Covariance n = normed(pair, left, right);
    const Eigen::MatrixXd s = 1.5 * average * n.k * average.transpose();
    const Eigen::MatrixXd t = 1.5 * average * n.t * average.transpose() + 2 * s;
    return {skip * pair.k + attention * s, skip * pair.t + attention * t};
  };
  const auto gated = [&](const Covariance& pair, const Covariance& left,
                         const Covariance& right) -> Covariance {
    const Covariance n = normed(pair, left, right);
    const Eigen::MatrixXd g = (1.7 * n.k).array() + 0.2, tg = g + 1.7 * n.t;
    const Eigen::MatrixXd v = 0.8 * n.k, tv = v + 0.8 * n.t;
    const Eigen::MatrixXd k = g.cwiseProduct(v), t = tg.cwiseProduct(v) + g.cwiseProduct(tv);
    return {skip * pair.k + mlp * 0.6 * k, skip * pair.t + mlp * 0.6 * (k + t)};
  };
  check_readout(models::decoder_block(options),
                behind_dense(two_sequences()).mapped(attended).mapped(gated).pair);
}

TEST_CASE("blocks: options out of range") {
  for (const double alpha : {-0.1, 1.1, std::nan("")}) {
    CAPTURE(alpha);
    CHECK_THROWS_AS(static_cast<void>(models::residual_attention({.skip_share = alpha})), ArgumentError);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(models::residual_attention({.skip_share = 2})),
                       "residual_attention: skip_share must lie in [0, 1], got 2", ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(models::residual_attention({.positions = {.rho = -1}})), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(models::transformer_block({.weight_variance = -1})), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(models::gated_mlp({.gate_weight_variance = -1})), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(models::decoder_block({.skip_scale = std::nan("")})), ArgumentError);
}
