#include "widelimit/gp/calibration.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const boost::math::normal standard_normal;

double phi_of(double x) { return cdf(standard_normal, x); }

}  // namespace

TEST_CASE("class probabilities: two outputs, or one against zero, have a closed form") {
  for (const double difference : {-30.0, -2.0, 0.0, 1e-3, 0.7, 9.0}) {
    for (const double variance : {0.01, 1.0, 40.0}) {
      CAPTURE(difference);
      CAPTURE(variance);
      const Vector<double> v = Vector<double>::Constant(1, variance);
      const Matrix<double> two = class_probabilities(Matrix<double>{{5.0, 5.0 + difference}}, v);
      CHECK(std::abs(two(0, 1) - phi_of(difference / std::sqrt(2 * variance))) < 1e-13);
      CHECK(std::abs(two.sum() - 1) < 1e-13);
      const Matrix<double> one = class_probabilities(Matrix<double>{{difference}}, v);
      REQUIRE(one.cols() == 2);
      CHECK(std::abs(one(0, 1) - phi_of(difference / std::sqrt(variance))) < 1e-13);
    }
  }
}

TEST_CASE("class probabilities: the share of draws in which each output is the largest") {
  const Matrix<double> mean{{0.3, -0.2, 0.9, 0.1}};
  const double variance = 0.5;
  const Matrix<double> probabilities = class_probabilities(mean, Vector<double>::Constant(1, variance));
  numerics::RandomStream stream(41);
  const int draws = 300'000;
  Vector<double> wins = Vector<double>::Zero(4);
  for (int draw = 0; draw < draws; ++draw) {
    Vector<double> outputs = mean.row(0);
    for (int c = 0; c < 4; ++c) outputs(c) += std::sqrt(variance) * stream.normal();
    Eigen::Index winner = 0;
    outputs.maxCoeff(&winner);
    wins(winner) += 1.0 / draws;
  }
  for (int c = 0; c < 4; ++c) {
    const double p = probabilities(0, c);
    CHECK(std::abs(wins(c) - p) < 5 * std::sqrt(p * (1 - p) / draws));
  }
}

TEST_CASE("class probabilities: none is above 1") {
  for (int step = 0; step <= 400; ++step) {
    const Matrix<double> mean{{0.05 * step, 0.0, -0.3}};
    CHECK(class_probabilities(mean, Vector<double>::Ones(1)).maxCoeff() <= 1);
  }
}

TEST_CASE("class probabilities: many classes, adaptive quadrature, shifts and equal means") {
  for (const int classes : {3, 10, 1000}) {
    CAPTURE(classes);
    Matrix<double> mean = Matrix<double>::Zero(1, classes);
    const Vector<double> unit = Vector<double>::Ones(1);
    CHECK((class_probabilities(mean, unit).array() - 1.0 / classes).abs().maxCoeff() < 1e-12);
    mean(0, 1) = 1.7;  // the others are equal: P(1) = E Phi(z + 1.7)^(classes - 1)
    const auto integrand = [&](double z) {
      return pdf(standard_normal, z) * std::pow(phi_of(z + 1.7), classes - 1);
    };
    const double expected =
        boost::math::quadrature::gauss_kronrod<double, 61>::integrate(integrand, -12.0, 12.0, 15, 1e-14);
    const Matrix<double> probabilities = class_probabilities(mean, unit);
    CHECK(std::abs(probabilities(0, 1) - expected) < 1e-12);
    CHECK(std::abs(probabilities.sum() - 1) < 1e-12);
    const Matrix<double> shifted = (mean.array() - 1000).matrix();
    CHECK((class_probabilities(shifted, unit) - probabilities).cwiseAbs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("class probabilities: variance zero is certain, the limit of small variance") {
  const Matrix<double> mean{{0.1, 0.4, 0.4}, {0.1, 0.5, 0.4}};
  const Matrix<double> certain{{0.0, 0.5, 0.5}, {0.0, 1.0, 0.0}};
  CHECK(class_probabilities(mean, Vector<double>::Zero(2)) == certain);
  CHECK((class_probabilities(mean, Vector<double>::Constant(2, 1e-300)) - certain).cwiseAbs().maxCoeff() <
        1e-13);
  CHECK(class_probabilities(Matrix<double>{{-3.0}}, Vector<double>::Zero(1)) == Matrix<double>{{1.0, 0.0}});
  CHECK_THROWS_WITH_AS(
      (void)class_probabilities(mean, Vector<double>{{1.0, -2.0}}),
      "class_probabilities: the variance of test input 1 must be finite and not negative, got -2",
      ArgumentError);
  CHECK_THROWS_AS((void)class_probabilities(mean, Vector<double>::Ones(1)), ArgumentError);
  CHECK_THROWS_AS((void)class_probabilities(Matrix<double>{{std::nan("")}}, Vector<double>::Ones(1)),
                  ArgumentError);
  CHECK_THROWS_WITH_AS((void)class_probabilities(Matrix<double>(2, 0), Vector<double>::Ones(2)),
                       "class_probabilities: the means must have at least one column", ArgumentError);
}

namespace {

/// Labels drawn from the softmax of factor z + shifts, of scores z [n, classes].
std::vector<int> drawn_labels(const Matrix<double>& scores, double factor, const Vector<double>& shifts,
                              std::uint64_t seed = 17) {
  numerics::RandomStream stream(seed);
  std::vector<int> labels;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const Vector<double> p = (factor * scores.row(i).transpose() + shifts).array().exp();
    double left = stream.uniform() * p.sum();
    int label = 0;
    while (label + 1 < p.size() && (left -= p(label)) > 0) ++label;
    labels.push_back(label);
  }
  return labels;
}

/// The loss that fit_class_calibration() makes small, by its definition, without the prior of the scale.
double calibration_loss(const ClassCalibration& calibration, const Matrix<double>& mean,
                        const Vector<double>& variances, const std::vector<int>& labels) {
  const Matrix<double> p = calibration.probabilities(mean, variances);
  double sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) sum -= std::log(p(static_cast<Eigen::Index>(i), labels[i]));
  return sum / static_cast<double>(labels.size());
}

}  // namespace

TEST_CASE("class calibration: finds scale and shifts, of which no others make left-out labels likelier") {
  for (const Eigen::Index outputs : {1, 3, 10}) {
    CAPTURE(outputs);
    const Eigen::Index n = 4000, classes = std::max<Eigen::Index>(2, outputs);
    const Matrix<double> mean = random_matrix(n, outputs, 81);
    const Vector<double> variances = random_matrix(n, 1, 82).cwiseAbs().array() + 0.1;
    const Matrix<double> z = variances.cwiseSqrt().cwiseInverse().asDiagonal() * mean;
    Matrix<double> scores = z;
    if (outputs == 1) {
      scores = Matrix<double>(n, 2);
      scores << -z / 2, z / 2;
    }
    Vector<double> shifts = Vector<double>::LinSpaced(classes, -1, 1);
    const std::vector<int> labels = drawn_labels(scores, 1.7, shifts);
    const ClassCalibrationFit fit = fit_class_calibration(mean, variances, labels);
    CHECK(fit.calibration.scale == Approx(1.7).epsilon(0.15));
    CHECK((fit.calibration.shifts - shifts).cwiseAbs().maxCoeff() < 0.4);
    CHECK(std::abs(fit.calibration.shifts.sum()) < 1e-10);
    CHECK(fit.log_loss == Approx(calibration_loss(fit.calibration, mean, variances, labels)).epsilon(1e-10));
    // Convex: where no small step leads down there is the least, but for what the prior of the shifts moves it.
    for (Eigen::Index k = -1; k < classes; ++k)
      for (const double step : {-0.1, 0.1}) {
        ClassCalibration other = fit.calibration;
        (k < 0 ? other.scale : other.shifts(k)) += step;
        CHECK(calibration_loss(other, mean, variances, labels) > fit.log_loss);
      }
  }
}

TEST_CASE("class calibration: few labels a class do not change which class is predicted, many do") {
  const Eigen::Index n = 30, n_test = 500, classes = 10;
  const Vector<double> no_shifts = Vector<double>::Zero(classes);
  const auto right = [](const Matrix<double>& scores, const std::vector<int>& labels) {
    return accuracy(classes_of(scores), labels);
  };
  double calibrated = 0, by_means = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Matrix<double> train = random_matrix(n, classes, 200 + seed),
                         test = random_matrix(n_test, classes, 300 + seed);
    const auto fit = fit_class_calibration(train, Vector<double>::Ones(n),
                                           drawn_labels(train, 1.2, no_shifts, 400 + seed));
    const std::vector<int> labels = drawn_labels(test, 1.2, no_shifts, 500 + seed);
    calibrated += right(fit.calibration.probabilities(test, Vector<double>::Ones(n_test)), labels) / 40;
    by_means += right(test, labels) / 40;
  }
  CHECK(calibrated >= by_means - 0.01);
  // The same classes of unequal frequencies, of many rows: shifts are worth it.
  const Vector<double> shifts = Vector<double>::LinSpaced(classes, -2, 2);
  const Matrix<double> train = random_matrix(2000, classes, 601), test = random_matrix(4000, classes, 602);
  const auto fit =
      fit_class_calibration(train, Vector<double>::Ones(2000), drawn_labels(train, 1.2, shifts, 603));
  const std::vector<int> labels = drawn_labels(test, 1.2, shifts, 604);
  CHECK(right(fit.calibration.probabilities(test, Vector<double>::Ones(4000)), labels) >
        right(test, labels) + 0.05);
}

TEST_CASE("class calibration: scores without any signal have no scale that could be found, but frequencies") {
  std::vector<int> labels(200, 0);
  for (std::size_t i = 0; i < 20; ++i) labels[i] = 1;
  const Matrix<double> none = Matrix<double>::Zero(200, 3);
  for (std::size_t i = 20; i < 60; ++i) labels[i] = 2;
  const auto fit = fit_class_calibration(none, Vector<double>::Ones(200), labels);
  const Matrix<double> p = fit.calibration.probabilities(none, Vector<double>::Ones(200));
  CHECK(p(0, 0) == Approx(0.7).epsilon(0.03));
  CHECK(p(0, 1) == Approx(0.1).epsilon(0.1));
}

TEST_CASE("class calibration: classes without signal have their frequencies, rare ones too") {
  const Eigen::Index n = 400;
  const Matrix<double> mean = random_matrix(n, 3, 91);
  std::vector<int> labels;
  for (int i = 0; i < n; ++i) labels.push_back(i % 50 == 7 ? 2 : i % 12 == 0 ? 1 : 0);
  const auto fit = fit_class_calibration(mean, Vector<double>::Ones(n), labels);
  const Matrix<double> p =
      fit.calibration.probabilities(random_matrix(2000, 3, 92), Vector<double>::Ones(2000));
  CHECK(p.col(2).mean() == Approx(8.0 / 400).epsilon(0.2));
  // Labels that stand for 4,000 with a rarer class.
  const auto weighted =
      fit_class_calibration(mean, Vector<double>::Ones(n), labels, Vector<double>{{3650, 320, 30}});
  CHECK(weighted.calibration.probabilities(mean, Vector<double>::Ones(n)).col(2).mean() ==
        Approx(30.0 / 4000).epsilon(0.2));
}

TEST_CASE(
    "class calibration: separated classes are not certain; certain means, many classes and bad arguments") {
  const std::vector<int> labels{0, 0, 1, 1};
  const Matrix<double> apart{{-1.0}, {-1.0}, {1.0}, {1.0}};
  const auto fit = fit_class_calibration(apart, Vector<double>::Ones(4), labels);
  const double p = fit.calibration.probabilities(apart, Vector<double>::Ones(4))(3, 1);
  // Four rows one unit of scale on their side, and a prior of the rate 1: 4 log(1 + exp(-2 s)) + s is least there.
  CHECK(p == Approx(1 - 1.0 / 8).epsilon(1e-6));
  // A row that counts twice is two rows.
  const std::vector<int> some{0, 1, 1};
  const Matrix<double> scores{{-1.0}, {0.4}, {1.0}}, repeated{{-1.0}, {0.4}, {1.0}, {1.0}};
  const auto shared =
                 fit_class_calibration(scores, Vector<double>::Ones(3), some, {}, Vector<double>{{1, 1, 2}}),
             twice = fit_class_calibration(repeated, Vector<double>::Ones(4), std::vector<int>{0, 1, 1, 1});
  CHECK(shared.log_loss == Approx(twice.log_loss).epsilon(1e-9));
  CHECK(shared.calibration.scale == Approx(twice.calibration.scale).epsilon(1e-6));
  CHECK_THROWS_WITH_AS(
      (void)fit_class_calibration(scores, Vector<double>::Ones(3), some, {}, Vector<double>{{1, 0, 1}}),
      "fit_class_calibration: expected a positive share for each of 3 labels", ArgumentError);
  const auto certain = fit_class_calibration(apart, Vector<double>{{1.0, 0.0, 1.0, 1.0}}, labels);
  CHECK(certain.calibration.shifts.size() == 0);
  CHECK(certain.calibration.probabilities(apart, Vector<double>::Ones(4)) ==
        class_probabilities(apart, Vector<double>::Ones(4)));
  CHECK(fit.calibration.probabilities(apart, Vector<double>::Zero(4)) ==
        class_probabilities(apart, Vector<double>::Zero(4)));
  const Matrix<double> mean = random_matrix(2, 3, 84);
  const Vector<double> one = Vector<double>::Ones(2);
  CHECK_THROWS_AS((void)fit_class_calibration(mean, one, std::vector<int>{0}), ArgumentError);
  CHECK_THROWS_AS((void)fit_class_calibration(mean, one, std::vector<int>{0, 3}), ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)fit_class_calibration(mean, one, std::vector<int>{0, 2}, Vector<double>{{1, 1, 0}}),
      "fit_class_calibration: expected counts of the 3 classes, none below that of the labels",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit.calibration.probabilities(mean, one),
                       "ClassCalibration::probabilities: expected means of 2 classes, got 3 outputs",
                       ArgumentError);
}

TEST_CASE("calibration: bins and expected error by hand; bin edges belong below") {
  const Matrix<double> probabilities{{0.75, 0.25}, {0.8, 0.2}, {0.4, 0.6}, {0.0, 1.0}, {0.5, 0.5}};
  const std::vector<int> labels = {0, 1, 1, 1, 1};
  const Calibration result = calibration(probabilities, labels, 4);
  REQUIRE(result.bins.size() == 4);
  CHECK(result.bins[0].count == 0);
  CHECK(result.bins[1].count == 1);  // 0.5, predicted 0, wrong
  CHECK(result.bins[2].count == 2);  // 0.75 and 0.6, right
  CHECK(result.bins[3].count == 2);  // 0.8 wrong, 1.0 right
  CHECK(result.bins[2].lower == 0.5);
  CHECK(result.bins[2].upper == 0.75);
  CHECK(result.bins[2].accuracy == 1);
  CHECK(result.bins[2].mean_confidence == Approx(0.675));
  CHECK(result.bins[3].accuracy == 0.5);
  CHECK(result.expected_error == Approx((0.5 + 2 * 0.325 + 2 * 0.4) / 5).epsilon(1e-14).scale(0));
  CHECK(calibration(probabilities, labels).bins.size() == 15);
}

TEST_CASE("calibration: every edge of every number of bins belongs below") {
  const std::vector<int> label = {0};
  for (int bins = 1; bins <= 100; ++bins)
    for (int edge = (bins + 1) / 2; edge <= bins; ++edge) {
      const double confidence = static_cast<double>(edge) / bins;
      const Calibration result = calibration(Matrix<double>{{confidence, 1 - confidence}}, label, bins);
      CAPTURE(bins);
      CAPTURE(edge);
      const CalibrationBin& below = result.bins[static_cast<std::size_t>(edge - 1)];
      CHECK(below.count == 1);
      CHECK(below.lower < confidence);
      CHECK(confidence <= below.upper);
    }
  CHECK(calibration(Matrix<double>{{1 + 1e-9, 0}}, label, 3).bins.back().count == 1);
}

TEST_CASE("calibration: predictions that are right as often as they claim have error zero") {
  const Matrix<double> probabilities = Matrix<double>{{0.75, 0.25}}.replicate(4, 1);
  CHECK(calibration(probabilities, std::vector<int>{0, 1, 0, 0}).expected_error == Approx(0));
  CHECK(calibration(probabilities, std::vector<int>{1, 1, 1, 1}).expected_error == Approx(0.75));
}

TEST_CASE("calibration: arguments that do not fit") {
  const Matrix<double> fine{{0.75, 0.25}};
  const std::vector<int> label = {0};
  CHECK_THROWS_WITH_AS((void)calibration(fine, label, 0), "calibration: bins must be positive, got 0",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)calibration(fine, std::vector<int>{}),
      "calibration: expected a row of probabilities for each label and at least one, got [1, 2] and 0 labels",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)calibration(fine, std::vector<int>{2}),
                       "calibration: labels must be 0 .. 1, but label 0 (from 0) is 2", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)calibration(2 * fine, label),
      "calibration: each row must be probabilities with sum 1, but row 0 lies in [0.5, 1.5] and has sum 2",
      ArgumentError);
  CHECK_THROWS_AS((void)calibration(Matrix<double>{{1.5, -0.5}}, label), ArgumentError);
  CHECK_THROWS_AS((void)calibration(Matrix<double>{{std::nan(""), 1.0}}, label), ArgumentError);
}
