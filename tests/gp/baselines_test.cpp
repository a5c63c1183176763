// Against scikit-learn 1.9.1: StandardScaler with LogisticRegression(C=1 / penalty, tol=1e-12), its penalty by the same
// fifths held out, and RidgeCV(10^-2, ..., 10^5).
#include "widelimit/gp/baselines.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/index.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

namespace {

/// Four columns, of which the last is the same for all training inputs.
Matrix<double> narrow_inputs(int first, int count, double constant) {
  Matrix<double> x(count, 4);
  for (int i = 0; i < count; ++i) {
    const int k = first + i;
    x.row(i) << std::sin(1.0 * k), 3 * std::cos(2.0 * k) + 1, 0.5 * (k % 7), constant;
  }
  return x;
}

/// More columns than inputs.
Matrix<double> wide_inputs(int first, int count) {
  Matrix<double> x(count, 12);
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 12; ++k) x(i, k) = std::sin(1.3 * (first + i) * (k + 1));
  return x;
}

const std::vector<int> three_classes{1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1, 2, 2, 2, 0,
                                     0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1};

void check_close(const Matrix<double>& found, const Matrix<double>& expected, double tolerance) {
  REQUIRE(found.rows() == expected.rows());
  REQUIRE(found.cols() == expected.cols());
  for (Index i = 0; i < found.rows(); ++i)
    for (Index k = 0; k < found.cols(); ++k) CHECK(std::abs(found(i, k) - expected(i, k)) < tolerance);
}

}  // namespace

TEST_CASE(
    "baselines: logistic regression is that of scikit-learn, with the penalty that predicts inputs held "
    "out") {
  const Matrix<double> train = narrow_inputs(0, 30, 1), test = narrow_inputs(100, 5, 2);
  check_close(logistic_baseline(train, three_classes, 3, test),
              Matrix<double>{{0.0014660661, 0.9706187826, 0.0279151513},
                             {0.2175274991, 0.7310408415, 0.0514316594},
                             {0.9972200742, 0.0000001626, 0.0027797632},
                             {0.7161111866, 0.0196756824, 0.2642131310},
                             {0.0007974177, 0.5802857662, 0.4189168161}},  // penalty 1/10
              2e-6);
  std::vector<int> two_classes;
  for (const int label : three_classes) two_classes.push_back(label == 2 ? 1 : 0);
  check_close(logistic_baseline(train, two_classes, 2, test),
              Matrix<double>{{0.7421881438, 0.2578118562},
                             {0.9482286097, 0.0517713903},
                             {0.8793736145, 0.1206263855},
                             {0.8845928154, 0.1154071846},
                             {0.5249587657, 0.4750412343}},  // penalty 1
              2e-6);
  check_close(
      logistic_baseline(wide_inputs(1, 8), std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}, 3, wide_inputs(20, 3)),
      Matrix<double>{{0.3749967640, 0.3750012333, 0.2500020028},
                     {0.3750415874, 0.3749596443, 0.2499987683},
                     {0.3749985627, 0.3750073730, 0.2499940644}},  // penalty 10^5: nothing is learned
      2e-6);
}

TEST_CASE("baselines: ridge regression is that of scikit-learn, its variance the error of inputs left out") {
  Matrix<double> targets(30, 1);
  const Matrix<double> train = narrow_inputs(0, 30, 1);
  for (int i = 0; i < 30; ++i) targets(i, 0) = 2 * train(i, 0) - train(i, 1) + std::sin(7.0 * i);
  const NumberBaseline found = linear_baseline(train, targets, narrow_inputs(100, 5, 2));
  check_close(
      found.mean,
      Matrix<double>{{-3.4970111476}, {-1.7206847195}, {4.1548459768}, {-0.1593012416}, {-3.8038170215}},
      1e-9);
  check_close(found.variances, Matrix<double>::Constant(5, 1, 0.6391237004979463), 1e-10);

  Matrix<double> powers(8, 1);
  for (int i = 0; i < 8; ++i) powers(i, 0) = std::pow(i, 1.5);
  const NumberBaseline wide = linear_baseline(wide_inputs(1, 8), powers, wide_inputs(20, 3));
  check_close(wide.mean, Matrix<double>{{-7.502885401}, {-13.0191229928}, {-9.1627085791}}, 1e-7);
  check_close(wide.variances, Matrix<double>::Constant(3, 1, 47.675142735302956), 1e-7);
}

TEST_CASE("baselines: labels that the columns decide have the smallest penalty") {
  const Matrix<double> train = narrow_inputs(0, 30, 1);
  std::vector<int> labels;
  for (int i = 0; i < 30; ++i) labels.push_back(train(i, 0) + 0.3 * std::sin(11.0 * i) > 0 ? 1 : 0);
  check_close(logistic_baseline(train, labels, 2, narrow_inputs(100, 5, 2)),
              Matrix<double>{{0.9998061510, 0.0001938490},
                             {0.0004242532, 0.9995757468},
                             {0.0000000005, 0.9999999995},
                             {0.0000029012, 0.9999970988},
                             {0.9787730069, 0.0212269931}},  // penalty 1/100
              2e-6);
}

TEST_CASE("baselines: many columns without a signal are not fitted") {
  // 40 inputs of 200 columns: with the penalty 1 all labels are fitted, and others predicted with certainty.
  Matrix<double> train(40, 200), test(200, 200);
  std::vector<int> labels, truths;
  for (int i = 0; i < 240; ++i) {
    Matrix<double>& x = i < 40 ? train : test;
    for (int k = 0; k < 200; ++k) x(i < 40 ? i : i - 40, k) = std::sin(1.7 * (i + 3) * (i + 3) * (k + 1.3));
    (i < 40 ? labels : truths).push_back(i * i / 3 % 2);
  }
  const Matrix<double> probabilities = logistic_baseline(train, labels, 2, test);
  double loss = 0;
  for (std::size_t i = 0; i < truths.size(); ++i)
    loss -= std::log(probabilities(static_cast<Index>(i), truths[i])) / static_cast<double>(truths.size());
  CHECK(loss < 0.75);
}

TEST_CASE("baselines: inputs that say nothing leave the frequencies and the mean") {
  const Matrix<double> train = Matrix<double>::Constant(30, 2, 5), test = Matrix<double>::Constant(4, 2, 7);
  check_close(logistic_baseline(train, three_classes, 3, test), frequency_baseline(three_classes, 3, 4),
              1e-6);
  const Matrix<double> targets = narrow_inputs(0, 30, 1).leftCols(2);
  const NumberBaseline mean = mean_baseline(targets, 4), linear = linear_baseline(train, targets, test);
  check_close(linear.mean, mean.mean, 1e-14);
  const double squares = (targets.col(1).array() - targets.col(1).mean()).square().sum();
  CHECK(mean.variances(3, 1) == Approx(squares / 29 * (1 + 1.0 / 30)).epsilon(1e-13));
  CHECK(frequency_baseline(three_classes, 4, 2)(1, 3) == 0);
}

TEST_CASE("baselines: what they do not take is an error") {
  const Matrix<double> train = narrow_inputs(0, 30, 1);
  CHECK_THROWS_AS((void)logistic_baseline(train.topRows(3), three_classes, 3, train), ArgumentError);
  CHECK_THROWS_AS((void)logistic_baseline(train, three_classes, 2, train), ArgumentError);
  CHECK_THROWS_AS((void)logistic_baseline(train, three_classes, 3, train.leftCols(2)), ArgumentError);
  CHECK_THROWS_AS((void)logistic_baseline(Matrix<double>::Constant(30, 2, HUGE_VAL), three_classes, 3, train),
                  ArgumentError);
  CHECK_THROWS_AS((void)linear_baseline(train, Matrix<double>::Zero(3, 1), train), ArgumentError);
  CHECK_THROWS_AS((void)frequency_baseline({}, 3, 2), ArgumentError);
}
