#include "propagation/softmax_moments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "widelimit/matrix.hpp"

namespace widelimit::propagation {
namespace {

using Eigen::Index;

/// Beyond, grids become large.
constexpr double largest_logit_std = 4;
constexpr double largest_degree = 4000;
/// -ln of what is left out.
constexpr double digits = 37;
constexpr double most_normals = 12.5;  ///< Reach of polynomials times the density's root exp(-x^2 / 4).

/// The trapezoidal rule over tau = ln t, with t^k exp(-t Z) dtau in the place of t^(k - 1) exp(-t Z) dt.
struct LogTimes {
  LogTimes(double keys, double s) {
    // Left of 1 / Z integrands fall as t; right of it as the chance of a small Z does, and at least as exp(-t).
    const double from = -std::log(keys) - s * s / 2 - digits, to = 9 * s + 5;
    // The trapezoidal rule converges geometrically for these integrands, so that a spacing of
    // 1/4 gives about 12 digits.
    const auto count = static_cast<Index>(std::ceil((to - from) / step));
    values = Vector<double>::LinSpaced(count, from, from + step * static_cast<double>(count - 1));
  }
  static constexpr double step = 0.25;
  Vector<double> values;
};

/// Degree at which the series of a correlation ends: functions of s x that are analytic for |Im s x| < pi / 2 have
/// coefficients that fall as exp(-sqrt(k) pi / (2 s)), and two of them are multiplied.
Index degrees(double s, double correlation) {
  const double per_root = 0.9 * std::numbers::pi / s, per_degree = -std::log(std::abs(correlation));
  double degree = std::pow(digits / per_root, 2);
  if (per_degree > 0) degree = std::min(degree, digits / per_degree);
  if (degree > largest_degree) throw LogitsTooSharp();
  // Of small s coefficients fall as s^k / sqrt(k!).
  return std::max<Index>(18, static_cast<Index>(std::ceil(degree))) + 1;
}

/// Nodes of the normal distribution at which products of a polynomial and a function of s x are summed exactly.
Vector<double> normal_nodes(double s, Index count_of_degrees) {
  const double frequencies = 23 * s + std::sqrt(static_cast<double>(count_of_degrees)) + 9,
               step = 2 * std::numbers::pi / frequencies;
  const auto half = static_cast<Index>(std::ceil(most_normals / step));
  return Vector<double>::LinSpaced(2 * half + 1, -step * static_cast<double>(half),
                                   step * static_cast<double>(half));
}

/// [nodes, degrees]: normalised Hermite polynomials times the weight of a node.
Matrix<double> weighted_polynomials(const Vector<double>& x, Index count) {
  const double step = x.size() > 1 ? x[1] - x[0] : 1;
  Matrix<double> h(x.size(), count);
  for (Index i = 0; i < x.size(); ++i) {
    // With the root of the density inside, which keeps high degrees within the range of double.
    const double root = std::exp(-x[i] * x[i] / 4) / std::pow(2 * std::numbers::pi, 0.25);
    h(i, 0) = root;
    if (count > 1) h(i, 1) = x[i] * root;
    for (Index k = 2; k < count; ++k) {
      const auto degree = static_cast<double>(k);
      h(i, k) = (x[i] * h(i, k - 1) - std::sqrt(degree - 1) * h(i, k - 2)) / std::sqrt(degree);
    }
    h.row(i) *= root * step;
  }
  return h;
}

/// [times, nodes]: exp(k z - exp(z)) at z = s x + tau.
Matrix<double> powers(const LogTimes& times, const Vector<double>& x, double s, int k) {
  Matrix<double> g(times.values.size(), x.size());
  for (Index i = 0; i < g.rows(); ++i)
    for (Index j = 0; j < g.cols(); ++j) {
      const double z = s * x[j] + times.values[i];
      g(i, j) = std::exp(k * z - std::exp(z));
    }
  return g;
}

SoftmaxMoments of_equal_logits(double keys) { return {1 / keys, (keys - 1) / (keys * keys)}; }

}  // namespace

SoftmaxMoments softmax_moments(Index keys, double logit_std) {
  const auto n = static_cast<double>(keys);
  if (logit_std == 0) return of_equal_logits(n);
  if (!(logit_std <= largest_logit_std)) throw LogitsTooSharp();
  const LogTimes times(n, logit_std);
  const Vector<double> x = normal_nodes(logit_std, 1);
  const Vector<double> weights = weighted_polynomials(x, 1).col(0);
  // phi_k(tau) = E exp(k z - exp(z)), which is t^k E exp(k s x - t exp(s x)).
  std::array<Eigen::ArrayXd, 5> phi;
  for (int k = 0; k < 5; ++k)
    phi[static_cast<std::size_t>(k)] = (powers(times, x, logit_std, k) * weights).array();
  // One or two of the n keys are singled out in each sum; each of the others contributes a factor phi_0.
  const Eigen::ArrayXd others = phi[0].max(0).pow(n - 2), all = others * phi[0];
  const double h = LogTimes::step;
  // The factors are n t^k / Gamma(k) for k = 2, 3 and 4 powers of 1 / Z.
  const double squares = n * h * (phi[2] * all).sum(), cubes = n / 2 * h * (phi[3] * all).sum();
  const double pairs = h / 6 * (n * phi[4] * all + n * (n - 1) * phi[2].square() * others).sum();
  return {squares, squares - 2 * cubes + pairs};
}

SoftmaxMoments softmax_moments(Index keys, double logit_std, double correlation) {
  const auto n = static_cast<double>(keys);
  if (logit_std == 0) return of_equal_logits(n);
  if (!(logit_std <= largest_logit_std)) throw LogitsTooSharp();
  const LogTimes times(n, logit_std);
  const Index count = degrees(logit_std, correlation);
  const Vector<double> x = normal_nodes(logit_std, count);
  const Matrix<double> polynomials = weighted_polynomials(x, count);
  Vector<double> series(count);
  series[0] = 1;
  for (Index k = 1; k < count; ++k) series[k] = series[k - 1] * correlation;
  std::array<Matrix<double>, 3> coefficients;
  for (int k = 0; k < 3; ++k)
    coefficients[static_cast<std::size_t>(k)] = powers(times, x, logit_std, k) * polynomials;
  // phi_kl(tau, upsilon) = E exp(k z - exp(z) + l v - exp(v)), z = s x + tau, v = s y + upsilon.
  const auto phi = [&](std::size_t k, std::size_t l) -> Eigen::ArrayXXd {
    return (coefficients[k] * series.asDiagonal() * coefficients[l].transpose()).array();
  };
  // Rounding can leave a mean of positive numbers slightly below 0, which has no real power.
  const Eigen::ArrayXXd none = phi(0, 0).max(0), one = phi(1, 1);
  const Eigen::ArrayXXd others = none.pow(n - 2), all = others * none;
  const double area = LogTimes::step * LogTimes::step;
  const double products = n * area * (one * all).sum(), cubes = n * area * (phi(1, 2) * all).sum();
  const double pairs = area * (n * phi(2, 2) * all + n * (n - 1) * one.square() * others).sum();
  return {products, products - 2 * cubes + pairs};
}

}  // namespace widelimit::propagation
