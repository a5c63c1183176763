// Models of rows that differ in noise, and of inputs that go through a learned map.
#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/kernels.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network wide({layers::dense({.weight_variance = 2, .bias_variance = 0.1}), layers::relu(),
                    layers::dense()});

Vector<double> noises(Index n) {
  Vector<double> variances(n);
  for (Index i = 0; i < n; ++i) variances(i) = 0.02 + 0.3 * static_cast<double>(i % 4);
  return variances;
}

}  // namespace

TEST_CASE("model rows: known noise variances are those of the posterior written out") {
  const Matrix<double> x = random_matrix(20, 3, 1), y = random_matrix(20, 1, 2),
                       test = random_matrix(4, 3, 3);
  const Vector<double> noise = noises(20);
  const Model model = Model::fit<double>(wide, x, y, {.noise_variances = noise});
  const double offset = y.mean(), spread = (y.array() - offset).square().mean(),
               amplitude = model.amplitude()(0) * spread;
  const Matrix<double> kernel = amplitude * gram<double>(wide, x).nngp,
                       cross = amplitude * gram<double>(wide, test, x).nngp;
  const Matrix<double> covariance = kernel + Matrix<double>(noise.asDiagonal());
  const Eigen::LLT<Matrix<double>> factor(covariance);
  const Vector<double> centred = y.col(0).array() - offset;
  const Vector<double> mean = (cross * factor.solve(centred)).array() + offset;
  const ModelPrediction prediction = model.predict(Inputs<double>(test));
  const Matrix<double> solved = factor.solve(Matrix<double>(cross.transpose()));
  for (Index i = 0; i < 4; ++i) {
    CHECK(prediction.mean(i, 0) == Approx(mean(i)).epsilon(1e-9));
    const double prior = amplitude * gram_diagonal<double>(wide, Matrix<double>(test.row(i))).nngp(0, 0);
    CHECK(prediction.variance(i, 0) == Approx(prior - cross.row(i).dot(solved.col(i))).epsilon(1e-7));
  }
  CHECK(prediction.noise_variance(0) == Approx(noise.mean()));
  const Matrix<double> lower = factor.matrixL();
  const double evidence = -0.5 * centred.dot(factor.solve(centred)) - lower.diagonal().array().log().sum() -
                          10 * std::log(2 * std::numbers::pi);
  CHECK(model.log_marginal_likelihood() == Approx(evidence).epsilon(1e-9));
  const Matrix<double> inverse = factor.solve(Matrix<double>::Identity(20, 20));
  const ModelLeaveOneOut others = model.leave_one_out();
  CHECK(others.variances(3, 0) == Approx(1 / inverse(3, 3)).epsilon(1e-8));
  CHECK(others.residuals(3, 0) == Approx(inverse.row(3).dot(centred) / inverse(3, 3)).epsilon(1e-8));
  // The amplitude is the most likely one: its neighbours are less likely.
  for (const double factor_of : {0.9, 1.1})
    CHECK(Model::fit<double>(wide, x, y,
                             {.noise_variances = noise, .amplitude = model.amplitude()(0) * factor_of})
              .log_marginal_likelihood() < model.log_marginal_likelihood());
}

TEST_CASE("model rows: a weight of two is two observations") {
  const Matrix<double> x = random_matrix(12, 3, 11), y = random_matrix(12, 1, 12),
                       test = random_matrix(3, 3, 13);
  Matrix<double> twice_x(14, 3), twice_y(14, 1);
  twice_x << x, x.row(0), x.row(5);
  twice_y << y, y.row(0), y.row(5);
  Vector<double> weights = Vector<double>::Ones(12);
  weights(0) = weights(5) = 2;
  const Noise noise = AbsoluteNoise(0.3);
  const Model weighted =
      Model::fit<double>(wide, x, y, {.noise = noise, .weights = weights, .targets_as_they_are = true});
  const Model repeated =
      Model::fit<double>(wide, twice_x, twice_y, {.noise = noise, .targets_as_they_are = true});
  const ModelPrediction one = weighted.predict(Inputs<double>(test)),
                        other = repeated.predict(Inputs<double>(test));
  for (Index i = 0; i < 3; ++i) {
    CHECK(one.mean(i, 0) == Approx(other.mean(i, 0)).epsilon(1e-9));
    CHECK(one.variance(i, 0) == Approx(other.variance(i, 0)).epsilon(1e-8));
  }
  // Chosen regularisers follow weights: equal ones change nothing but the unit of the noise.
  const Model plain = Model::fit<double>(wide, x, y),
              threefold = Model::fit<double>(wide, x, y, {.weights = Vector<double>::Constant(12, 3)});
  CHECK(plain.leave_one_out().residuals.isApprox(threefold.leave_one_out().residuals, 1e-9));
}

TEST_CASE("model rows: errors") {
  const Matrix<double> x = random_matrix(8, 2, 21), y = random_matrix(8, 1, 22);
  const auto fails = [&](const ModelOptions& options, const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(Model::fit<double>(wide, x, y, options)), message, ArgumentError);
  };
  fails({.weights = Vector<double>::Ones(7)},
        "Model::fit: expected weights for each of 8 training inputs, got 7");
  fails({.noise_variances = Vector<double>::Zero(8)},
        "Model::fit: noise variances must be positive and finite, got 0");
  fails({.kind = ModelKind::trained, .weights = Vector<double>::Ones(8)},
        "Model::fit: weights: they are for Bayesian regression: the kind bayesian");
  fails({.noise = AbsoluteNoise(1), .noise_variances = Vector<double>::Ones(8)},
        "Model::fit: noise_variances: known ones of the rows and one for all exclude each other: give one of "
        "both");
}

TEST_CASE("model rows: a model with a learned map and row factors is saved with them") {
  const Matrix<double> x = random_matrix(60, 4, 31), test = random_matrix(5, 4, 32);
  Matrix<double> y(60, 1);
  for (Index i = 0; i < 60; ++i) y(i, 0) = 3 * std::sin(2 * x(i, 0)) + 5;
  const auto folder = std::filesystem::temp_directory_path() / "widelimit-model-rows-test";
  for (const InputLearning how : {InputLearning::relevance, InputLearning::features}) {
    ModelOptions options{.weights = Vector<double>::LinSpaced(60, 0.5, 2)};
    options.learning = {.how = how, .rounds = 3};
    options.gram.threads = 1;
    const Model model = Model::fit<double>(wide, x, y, options);
    REQUIRE(model.learned());
    REQUIRE(model.learned()->kept);
    model.save(folder);
    const Model same = Model::load(folder);
    CHECK(same.feature_map().factors() == model.feature_map().factors());
    CHECK(same.mean(Inputs<double>(test)) == model.mean(Inputs<double>(test)));
    CHECK(!same.learned());
    // Inputs are handed over as they were, in either precision.
    const Matrix<float> narrow = test.cast<float>();
    CHECK((model.mean(Inputs<float>(narrow)) - model.mean(Inputs<double>(test))).cwiseAbs().maxCoeff() <
          1e-4);
    options.learning = {};
    const Model plain = Model::fit<double>(wide, x, y, options);
    CHECK(model.leave_one_out().mean_squared_error() < plain.leave_one_out().mean_squared_error());
  }
  std::filesystem::remove_all(folder);
}
