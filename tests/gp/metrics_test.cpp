#include "widelimit/gp/metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

TEST_CASE("metrics: classes are the first largest column, or the sign of a single one") {
  CHECK(classes_of(Matrix<double>{{1.0, 3.0, 2.0}, {2.0, 2.0, 1.0}}) == std::vector<int>{1, 0});
  CHECK(classes_of(Matrix<double>{{0.1}, {0.0}, {-0.1}}) == std::vector<int>{1, 0, 0});
  CHECK_THROWS_AS((void)classes_of(Matrix<double>{{1.0, std::nan("")}}), ArgumentError);
  CHECK_THROWS_WITH_AS((void)classes_of(Matrix<double>(0, 3)),
                       "classes_of: the outputs must have at least one row and one column, got [0, 3]",
                       ArgumentError);
}

TEST_CASE("metrics: accuracy and mean squared error by hand") {
  const Matrix<double> mean{{0.6, 0.1}, {0.2, 0.3}, {0.4, 0.5}, {1.0, 0.0}},
      targets{{0.5, -0.5}, {-0.5, 0.5}, {0.5, -0.5}, {0.5, -0.5}};
  CHECK(accuracy(mean, targets) == 0.75);
  const double squares = 0.01 + 0.36 + 0.49 + 0.04 + 0.01 + 1.0 + 0.25 + 0.25;
  CHECK(mean_squared_error(mean, targets) == Approx(squares / 8).epsilon(1e-14).scale(0));
  CHECK(accuracy(std::vector<int>{1, 2}, std::vector<int>{1, 0}) == 0.5);
  CHECK_THROWS_WITH_AS((void)accuracy(mean, targets.topRows(2)),
                       "accuracy: the targets (as the means) must be [4, 2], got [2, 2]", ArgumentError);
  CHECK_THROWS_WITH_AS((void)accuracy(std::vector<int>{1}, std::vector<int>{}),
                       "accuracy: expected as many predictions as labels and at least one, got 1 and 0",
                       ArgumentError);
  CHECK_THROWS_AS((void)mean_squared_error(mean, Matrix<double>::Constant(4, 2, HUGE_VAL)), ArgumentError);
}

TEST_CASE("metrics: predictive density is of the observation, summed over outputs, averaged over inputs") {
  const Matrix<double> mean{{1.0, 2.0}, {0.0, 0.0}}, targets{{1.5, 2.0}, {0.0, 1.0}};
  const Vector<double> variances{{0.3, 0.0}};
  const double noise = 0.2;
  const auto density = [](double d, double v) {
    return std::exp(-d * d / (2 * v)) / std::sqrt(2 * std::numbers::pi * v);
  };
  const double expected =
      -(std::log(density(0.5, 0.5) * density(0, 0.5)) + std::log(density(0, 0.2) * density(1, 0.2))) / 2;
  CHECK(negative_log_predictive_density(mean, variances, noise, targets) ==
        Approx(expected).epsilon(1e-14).scale(0));
  CHECK_THROWS_WITH_AS(
      (void)negative_log_predictive_density(mean, variances, 0, targets),
      "negative_log_predictive_density: test input 1 has variance 0 and so does the noise: there is no "
      "density; give the noise variance of the observations",
      ArgumentError);
  CHECK_THROWS_AS((void)negative_log_predictive_density(mean, -variances, noise, targets), ArgumentError);
  CHECK_THROWS_AS((void)negative_log_predictive_density(mean, variances, -0.1, targets), ArgumentError);
  CHECK_THROWS_AS((void)negative_log_predictive_density(mean, variances.head(1), noise, targets),
                  ArgumentError);
}

TEST_CASE("metrics: the confusion matrix counts (true, predicted)") {
  const std::vector<int> labels = {0, 0, 1, 2, 2}, predicted = {0, 1, 1, 0, 2};
  const ConfusionMatrix expected{{1, 1, 0}, {0, 1, 0}, {1, 0, 1}};
  CHECK(confusion_matrix(labels, predicted, 3) == expected);
  CHECK(static_cast<double>(confusion_matrix(labels, predicted, 3).trace()) / 5 ==
        accuracy(predicted, labels));
  CHECK_THROWS_WITH_AS((void)confusion_matrix(labels, predicted, 2),
                       "confusion_matrix: classes must be 0 .. 1, but input 3 has label 2 and prediction 0",
                       ArgumentError);
  CHECK_THROWS_AS((void)confusion_matrix(labels, std::vector<int>{-1, 0, 0, 0, 0}, 3), ArgumentError);
  CHECK_THROWS_AS((void)confusion_matrix(labels, predicted, 0), ArgumentError);
}
