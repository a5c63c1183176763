#include "propagation/softmax_moments.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

using namespace widelimit::propagation;
using doctest::Approx;
using Eigen::Index;

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Of two keys: w = logistic(s sqrt(2) x), u the same of y; the mean of what `term` makes of both.
template <typename Term>
double over_two_keys(double s, double correlation, const Term& term) {
  const double step = 0.04, root = std::sqrt(1 - correlation * correlation);
  double sum = 0;
  for (int i = -250; i <= 250; ++i)
    for (int j = -250; j <= 250; ++j) {
      const double x = step * i, z = step * j, y = correlation * x + root * z;
      sum += std::exp(-(x * x + z * z) / 2) *
             term(logistic(s * std::numbers::sqrt2 * x), logistic(s * std::numbers::sqrt2 * y));
    }
  return sum * step * step / (2 * std::numbers::pi);
}

struct DrawnMean {
  double mean = 0, error = 0;
};

struct DrawnMoments {
  DrawnMean products, jacobians;
};

DrawnMean mean_of_draws(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  for (const double number : numbers) squares += std::pow(number - sum / count, 2);
  return {sum / count, std::sqrt(squares / count / count)};
}

DrawnMoments drawn_moments(Index keys, double s, double correlation) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> products, jacobians;
  for (int draw = 0; draw < 100000; ++draw) {
    Eigen::ArrayXd w(keys), u(keys);
    for (Index i = 0; i < keys; ++i) {
      const double x = normal(random);
      w[i] = std::exp(s * x);
      u[i] = std::exp(s * (correlation * x + std::sqrt(1 - correlation * correlation) * normal(random)));
    }
    w /= w.sum();
    u /= u.sum();
    const Eigen::MatrixXd jw = Eigen::MatrixXd(w.matrix().asDiagonal()) - w.matrix() * w.matrix().transpose(),
                          ju = Eigen::MatrixXd(u.matrix().asDiagonal()) - u.matrix() * u.matrix().transpose();
    products.push_back((w * u).sum());
    jacobians.push_back(jw.cwiseProduct(ju).sum());
  }
  return {mean_of_draws(products), mean_of_draws(jacobians)};
}

}  // namespace

TEST_CASE("softmax moments: two keys, by integrals over the plane") {
  for (const double s : {0.01, 0.3, 1.0, 2.5})
    for (const double correlation : {-0.8, 0.0, 0.4, 0.9, 0.999}) {
      CAPTURE(s);
      CAPTURE(correlation);
      const SoftmaxMoments found = softmax_moments(2, s, correlation);
      CHECK(
          found.products ==
          Approx(over_two_keys(s, correlation, [](double w, double u) { return w * u + (1 - w) * (1 - u); }))
              .epsilon(1e-11)
              .scale(0));
      CHECK(found.jacobians ==
            Approx(over_two_keys(s, correlation,
                                 [](double w, double u) { return 4 * w * (1 - w) * u * (1 - u); }))
                .epsilon(1e-11)
                .scale(0));
    }
}

TEST_CASE("softmax moments: a row with itself is two rows of correlation 1") {
  for (const Index keys : {2, 7, 300})
    for (const double s : {0.0, 1e-5, 0.4, 1.7}) {
      CAPTURE(keys);
      CAPTURE(s);
      const SoftmaxMoments row = softmax_moments(keys, s), rows = softmax_moments(keys, s, 1);
      CHECK(rows.products == Approx(row.products).epsilon(1e-11).scale(0));
      CHECK(rows.jacobians == Approx(row.jacobians).epsilon(1e-11).scale(0));
    }
}

TEST_CASE("softmax moments: equal logits") {
  const SoftmaxMoments found = softmax_moments(5, 1e-9, 0.3), exact = softmax_moments(5, 0, 0.3);
  CHECK(exact.products == Approx(0.2).epsilon(1e-15));
  CHECK(exact.jacobians == Approx(4.0 / 25).epsilon(1e-15));
  CHECK(found.products == Approx(exact.products).epsilon(1e-12).scale(0));
  CHECK(found.jacobians == Approx(exact.jacobians).epsilon(1e-12).scale(0));
}

TEST_CASE("softmax moments: drawn logits of more keys") {
  for (const Index keys : {5, 20})
    for (const double s : {0.8, 3.0})
      for (const double correlation : {0.2, 0.95}) {
        CAPTURE(keys);
        CAPTURE(s);
        CAPTURE(correlation);
        const SoftmaxMoments found = softmax_moments(keys, s, correlation);
        const DrawnMoments drawn = drawn_moments(keys, s, correlation);
        CHECK(std::abs(found.products - drawn.products.mean) < 4.5 * drawn.products.error);
        CHECK(std::abs(found.jacobians - drawn.jacobians.mean) < 4.5 * drawn.jacobians.error);
      }
}

TEST_CASE("softmax moments: logits that are too sharp are refused") {
  CHECK_THROWS_AS(static_cast<void>(softmax_moments(4, 5)), LogitsTooSharp);
  CHECK_THROWS_AS(static_cast<void>(softmax_moments(4, 5, 0.5)), LogitsTooSharp);
}
