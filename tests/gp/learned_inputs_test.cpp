// Which inputs matter: relevance by the evidence, features by gradient outer products.
#include "widelimit/gp/learned_inputs.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernels.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network network({layers::dense({.weight_variance = 2, .bias_variance = 0.1}), layers::relu(),
                       layers::dense({.bias_variance = 0.1})});

/// Gram matrices of so few inputs are faster without the exchange between threads.
const RunControl one_thread{.threads = 1};

/// Two of six columns matter.
Matrix<double> smooth_targets(const Matrix<double>& x) {
  Matrix<double> y(x.rows(), 1);
  for (Index i = 0; i < x.rows(); ++i) y(i, 0) = std::sin(2 * x(i, 0)) + 0.7 * x(i, 1);
  y.col(0).array() -= y.mean();
  return y / std::sqrt(y.squaredNorm() / static_cast<double>(y.rows()));
}

Matrix<double> gaussian_gram(const Matrix<double>& x, const Matrix<double>& metric) {
  const double channels = static_cast<double>(x.cols());
  Matrix<double> gram(x.rows(), x.rows());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.rows(); ++j) {
      const Eigen::RowVectorXd difference = x.row(i) - x.row(j);
      gram(i, j) = std::exp(-0.5 * (difference * metric * difference.transpose())(0, 0) / channels);
    }
  return gram;
}

/// Recursive feature machines with the Gaussian kernel, written out: the metric after some rounds.
Matrix<double> plain_feature_metric(const Matrix<double>& x, const Matrix<double>& y, int rounds,
                                    bool diagonal) {
  const Index n = x.rows(), channels = x.cols();
  Matrix<double> metric = Matrix<double>::Identity(channels, channels);
  for (int round = 0; round < rounds; ++round) {
    const Matrix<double> gram = gaussian_gram(x, metric);
    double best = 1e300, regulariser = 0;
    for (const double value : regulariser_grid()) {
      const auto fit = Regression::fit(gram, y, RelativeRegulariser(value));
      const double score = fit.leave_one_out().negative_log_predictive_density();
      if (score < best) best = score, regulariser = value;
    }
    Matrix<double> shifted = gram;
    shifted.diagonal().array() += regulariser * gram.diagonal().mean();
    const Matrix<double> weights = shifted.ldlt().solve(y);
    Matrix<double> outer = Matrix<double>::Zero(channels, channels);
    for (Index i = 0; i < n; ++i) {
      Eigen::RowVectorXd gradient = Eigen::RowVectorXd::Zero(channels);
      for (Index j = 0; j < n; ++j)
        gradient -=
            weights(j, 0) * gram(i, j) * (x.row(i) - x.row(j)) * metric / static_cast<double>(channels);
      outer += gradient.transpose() * gradient / static_cast<double>(n);
    }
    if (diagonal) outer = Matrix<double>(outer.diagonal().asDiagonal());
    metric = outer / outer.diagonal().mean();
  }
  return metric;
}

}  // namespace

TEST_CASE("learned inputs: relevance finds the columns that matter, and groups share a scale") {
  const Matrix<double> x = random_matrix(80, 6, 11), y = smooth_targets(x);
  LearningOptions options{.how = InputLearning::relevance};
  const LearnedInputs learned = learn_inputs(network, Inputs<double>(x), y, options, one_thread);
  CHECK(learned.kept);
  CHECK(learned.after < learned.before - learned.standard_error);
  REQUIRE(learned.map.is_diagonal());
  const auto scales = learned.map.factors().row(0);
  CHECK(scales.head(2).minCoeff() > 4 * scales.tail(4).maxCoeff());
  CHECK(learned.course.at(1) > learned.course.at(0));
  CHECK(learned.regulariser.has_value());
  const Inputs<float> narrow(Matrix<float>(x.cast<float>()));
  CHECK(learn_inputs(network, narrow, y, options, one_thread).kept);
  options.groups = {0, 0, 1, 1, 2, 2};
  const LearnedInputs grouped = learn_inputs(network, Inputs<double>(x), y, options, one_thread);
  CHECK(grouped.map.factors()(0, 0) == grouped.map.factors()(0, 1));
  CHECK(grouped.map.factors()(0, 0) > 4 * grouped.map.factors()(0, 2));
}

TEST_CASE("learned inputs: what does not predict better is not kept") {
  const Matrix<double> x = random_matrix(60, 6, 21);
  const Matrix<double> noise = random_matrix(60, 1, 22);
  const LearnedInputs learned =
      learn_inputs(network, Inputs<double>(x), noise, {.how = InputLearning::relevance}, one_thread);
  CHECK(!learned.kept);
  CHECK(learned.map.is_identity());
  CHECK(!learned.rejected.is_identity());
  CHECK(!learned.regulariser);
}

TEST_CASE("learned inputs: the gradient outer product is that of differences of the predictor") {
  const Matrix<double> x = random_matrix(9, 3, 31), weights = random_matrix(9, 2, 32);
  for (const Kernels kernel : {Kernels::nngp, Kernels::ntk}) {
    Matrix<double> expected = Matrix<double>::Zero(3, 3);
    constexpr double step = 1e-5;
    const auto predicted = [&](const Matrix<double>& at) {
      const auto grams = gram<double>(network, at, x);
      return Matrix<double>((kernel == Kernels::ntk ? grams.ntk : grams.nngp) * weights);
    };
    for (Index i = 0; i < 9; ++i) {
      Matrix<double> gradient(3, 2);
      for (Index c = 0; c < 3; ++c) {
        Matrix<double> above = x.row(i), below = x.row(i);
        above(0, c) += step;
        below(0, c) -= step;
        gradient.row(c) = (predicted(above) - predicted(below)) / (2 * step);
      }
      expected += gradient * gradient.transpose() / 9;
    }
    const Matrix<double> found = gradient_outer_product(network, Inputs<double>(x), weights, kernel);
    CHECK((found - expected).cwiseAbs().maxCoeff() < 1e-6 * expected.cwiseAbs().maxCoeff());
  }
}

TEST_CASE("learned inputs: features with a Gaussian kernel are those of the method written out") {
  const Matrix<double> x = random_matrix(40, 4, 41), y = smooth_targets(x);
  const Network radial({layers::dense(), layers::rbf(0.5)});
  for (const bool full : {true, false})
    for (const int rounds : {1, 2}) {
      LearningOptions options{
          .how = InputLearning::features, .rounds = rounds, .full_matrix = full, .check = false};
      const LearnedInputs learned = learn_inputs(radial, Inputs<double>(x), y, options);
      REQUIRE(learned.course.size() == static_cast<std::size_t>(rounds) + 1);
      // The best round is taken; it is the last where scores fall.
      if (learned.course.back() > learned.course.at(learned.course.size() - 2)) continue;
      const Matrix<double> factors = learned.map.is_diagonal()
                                         ? Matrix<double>(learned.map.factors().row(0).asDiagonal())
                                         : learned.map.factors();
      const Matrix<double> metric = factors * factors.transpose(),
                           expected = plain_feature_metric(x, y, rounds, !full);
      CHECK((metric - expected).cwiseAbs().maxCoeff() < 1e-6);
    }
}

TEST_CASE("learned inputs: options that do not fit are errors") {
  const Matrix<double> x = random_matrix(10, 3, 51), y = random_matrix(10, 1, 52);
  const auto fails = [&](LearningOptions options, const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(learn_inputs(network, Inputs<double>(x), y, options)), message,
                         ArgumentError);
  };
  fails({.how = InputLearning::features}, "learn_inputs: expected 1 round or more, got 0");
  fails({.how = InputLearning::relevance, .groups = {0, 1}},
        "learn_inputs: expected a group for each of 3 channels, got 2");
  fails({.how = InputLearning::relevance, .groups = {0, 1, 7}},
        "learn_inputs: expected groups from 0 to 2, got 7");
  fails({.how = InputLearning::relevance, .kernel = Kernels::both},
        "learn_inputs: expected one kernel, nngp or ntk");
}
