#include "cli/program/self_checks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "widelimit/gp.hpp"
#include "widelimit/kernels.hpp"
#include "widelimit/numerics.hpp"

namespace widelimit::cli {
namespace {

template <typename Scalar>
Matrix<Scalar> random_matrix(Index rows, Index columns, std::uint64_t stream) {
  numerics::RandomStream random(1, stream);
  return Matrix<Scalar>::NullaryExpr(rows, columns, [&] { return static_cast<Scalar>(random.normal()); });
}

/// Of BLAS, in the Gram matrix of a linear network: X X^T / channels.
template <typename Scalar>
double product_error() {
  constexpr Index n = 200;
  const Matrix<Scalar> x = random_matrix<Scalar>(n, n, 0);
  const Matrix<double> wide = x.template cast<double>();
  const Matrix<double> exact = wide.lazyProduct(wide.transpose()) / static_cast<double>(n);
  const auto found = gram<Scalar>(Network("a linear layer", {layers::dense()}), x);
  return (found.nngp.template cast<double>() - exact).cwiseAbs().maxCoeff() / exact.cwiseAbs().maxCoeff();
}

/// Of (K + lambda I) w = y, from the mean at the training inputs: K w = y - lambda w.
double regression_error() {
  constexpr Index n = 200;
  const Matrix<double> a = random_matrix<double>(n, n, 2), y = random_matrix<double>(n, 3, 3);
  const Matrix<double> k = a.lazyProduct(a.transpose());
  const auto regression = gp::Regression::fit(k, y, gp::AbsoluteNoise(1));
  const Matrix<double> back = k.lazyProduct(regression.weights()) + regression.weights();
  return (back - y).cwiseAbs().maxCoeff() / y.cwiseAbs().maxCoeff();
}

/// Of the NNGP after one hidden layer of two inputs of variance 1 and covariance 1/2, for which it is known.
template <typename Scalar>
double hidden_layer_error(Layers activation, double known) {
  const Network network("a hidden layer", {layers::dense(), std::move(activation.front()), layers::dense()});
  xt::xarray<Scalar> x{{std::sqrt(Scalar(2)), 0}, {std::sqrt(Scalar(0.5)), std::sqrt(Scalar(1.5))}};
  return std::abs(static_cast<double>(gram<Scalar>(network, x).nngp(0, 1)) / known - 1);
}

/// (sin t + (pi - t) cos t) / (2 pi) at angle t = pi / 3 (Cho & Saul 2009, equation 6).
double known_relu() {
  using std::numbers::pi;
  return (std::sqrt(0.75) + pi / 3) / (2 * pi);
}

/// 2 / pi asin(2 K12 / (1 + 2)) (Williams 1997, equation 11).
double known_erf() { return 2 / std::numbers::pi * std::asin(1.0 / 3); }

GramResult<float> image_kernels(int threads) {
  const Network network(
      "convolutions and attention",
      {layers::conv({.filter = {3, 3}}), layers::relu(), layers::conv({.filter = {3, 3}}), layers::relu(),
       layers::attention(), layers::global_average_pool(), layers::dense()});
  xt::xarray<float> x = xt::zeros<float>({6, 8, 8, 3});
  numerics::RandomStream random(1, 4);
  for (float& value : x) value = static_cast<float>(random.normal());
  return gram<float>(network, x, {.threads = threads});
}

double threads_error() {
  const auto one = image_kernels(1), all = image_kernels(0);
  return std::max((one.nngp - all.nngp).cwiseAbs().maxCoeff(), (one.ntk - all.ntk).cwiseAbs().maxCoeff());
}

}  // namespace

std::string SelfCheck::text() const {
  return fmt::format("{}: error {:.1e}, expected at most {:.0e}", holds() ? "right" : "WRONG", error,
                     tolerance);
}

std::vector<SelfCheck> self_checks() {
  return {{"products, float", product_error<float>(), 1e-5},
          {"products, double", product_error<double>(), 1e-13},
          {"factorization", regression_error(), 1e-9},
          {"ReLU, float", hidden_layer_error<float>({layers::relu()}, known_relu()), 1e-6},
          {"ReLU, double", hidden_layer_error<double>({layers::relu()}, known_relu()), 1e-14},
          {"erf, double", hidden_layer_error<double>({layers::erf()}, known_erf()), 1e-14},
          {"any threads, same bits", threads_error(), 0}};
}

}  // namespace widelimit::cli
