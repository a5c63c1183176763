#include "widelimit/propagation/loss_predictor.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/numerics/statistics.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

constexpr LossPredictor truth{3, 2, 0.7, 2.302585};

std::vector<TrainingOutcome> outcomes(std::size_t count, double noise, std::uint64_t seed = 4) {
  numerics::RandomStream stream(seed);
  std::vector<TrainingOutcome> result;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = 1.2 * stream.uniform() - 0.6, g = 1.6 * stream.uniform() - 0.4;
    result.push_back({a, g, truth(a, g) + noise * stream.normal()});
  }
  return result;
}

std::filesystem::path written(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / "widelimit_predictor_test.csv";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("predictor: the note's cases") {
  const LossPredictor predictor{3, 2, 2.5, 4.61512051684126};
  CHECK(predictor(0.1, -0.2) == Approx(2.9).scale(0).epsilon(1e-14));
  CHECK(predictor(-0.3, 0.1) == Approx(3.4).scale(0).epsilon(1e-14));
  CHECK(predictor(1.5, 0.1) == 4.61512051684126);
}

TEST_CASE("predictor: the fit finds the weights that made the losses") {
  const PredictorFit fit = fit_loss_predictor(outcomes(60, 0), truth.ceiling);
  CHECK(fit.predictor.weight_a == Approx(3).scale(0).epsilon(1e-5));
  CHECK(fit.predictor.weight_g == Approx(2).scale(0).epsilon(1e-5));
  CHECK(fit.predictor.bias == Approx(0.7).scale(0).epsilon(1e-5));
  CHECK(fit.root_mean_square_error < 1e-6);
  CHECK(fit.explained_variance > 0.999999);
  CHECK(fit.rank_correlation > 0.99);
}

TEST_CASE("predictor: with noise the fit is no worse than the truth") {
  const auto noisy = outcomes(60, 0.1);
  double truth_error = 0;
  for (const TrainingOutcome& outcome : noisy) {
    const double error = truth(outcome.lambda_a, outcome.lambda_g) - outcome.loss;
    truth_error += error * error / 60;
  }
  const PredictorFit fit = fit_loss_predictor(noisy, truth.ceiling);
  CHECK(fit.root_mean_square_error <= std::sqrt(truth_error));
  CHECK(fit.predictor.weight_a == Approx(3).scale(0).epsilon(0.15));
  CHECK(fit.predictor.weight_g == Approx(2).scale(0).epsilon(0.15));
}

TEST_CASE("predictor: bootstrap errors are the scatter of fits to fresh outcomes") {
  constexpr int repetitions = 60;
  std::vector<double> weights, biases;
  double mean_error = 0, mean_bias_error = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto sample = outcomes(40, 0.1, 100 + static_cast<std::uint64_t>(i));
    const PredictorFit fit = fit_loss_predictor(sample, truth.ceiling);
    weights.push_back(fit.predictor.weight_a);
    biases.push_back(fit.predictor.bias);
    const LossPredictor errors = bootstrap_errors(sample, fit, 40, 7);
    CHECK(errors.ceiling == 0);
    mean_error += errors.weight_a / repetitions;
    mean_bias_error += errors.bias / repetitions;
  }
  const double scatter = std::sqrt(numerics::variance(weights).value);
  const double bias_scatter = std::sqrt(numerics::variance(biases).value);
  CHECK(mean_error == Approx(scatter).scale(0).epsilon(0.35));
  CHECK(mean_bias_error == Approx(bias_scatter).scale(0).epsilon(0.35));
  const auto sample = outcomes(40, 0.1);
  CHECK_THROWS_AS((void)bootstrap_errors(sample, fit_loss_predictor(sample), 1), ArgumentError);
}

TEST_CASE("predictor: rank correlation averages ties") {
  const std::vector<double> a{1, 2, 2, 4}, b{10, 20, 30, 40}, down{4, 3, 2, 1};
  CHECK(rank_correlation(b, b) == Approx(1).scale(0).epsilon(1e-14));
  CHECK(rank_correlation(b, down) == Approx(-1).scale(0).epsilon(1e-14));
  CHECK(rank_correlation(a, b) == Approx(4.5 / std::sqrt(5 * 4.5)).scale(0).epsilon(1e-14));
}

TEST_CASE("predictor: CSV files by column names") {
  const auto path = written(
      "# seed: 3\nsigma_w,lambda_g,loss,\"lambda_a\"\r\n1, 0.5 ,2.25,-0.125\n# more\n2,-1e-1,3,0.25\n");
  const auto rows = read_training_outcomes(path);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].lambda_a == -0.125);
  CHECK(rows[0].lambda_g == 0.5);
  CHECK(rows[1].loss == 3);
  CHECK_THROWS_WITH_AS((void)read_training_outcomes(written("lambda_a,loss\n1,2\n")),
                       doctest::Contains(": expected a column 'lambda_g', found lambda_a, loss"), DataError);
  CHECK_THROWS_WITH_AS((void)read_training_outcomes(written("lambda_a,lambda_g,loss\n1,2,3\n1,x,3\n")),
                       doctest::Contains(": line 3: column 'lambda_g': expected a number, found 'x'"),
                       DataError);
  CHECK_THROWS_WITH_AS((void)read_training_outcomes(written("lambda_a,lambda_g,loss\n1,2\n")),
                       doctest::Contains(": line 2: expected 3 fields as in the header, found 2"), DataError);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS((void)read_training_outcomes(path), doctest::Contains(path.string().c_str()),
                       DataError);
}

TEST_CASE("predictor: samples that cannot be fitted are refused") {
  CHECK_THROWS_WITH_AS((void)fit_loss_predictor(outcomes(3, 0)),
                       "fit_loss_predictor: outcomes must be at least 4, got 3", ArgumentError);
  auto rows = outcomes(5, 0);
  rows[2].loss = std::nan("");
  CHECK_THROWS_WITH_AS((void)fit_loss_predictor(rows),
                       doctest::Contains("fit_loss_predictor: outcomes must be finite"), ArgumentError);
  for (auto& row : rows) row.loss = 1;
  CHECK_THROWS_WITH_AS((void)fit_loss_predictor(rows), "fit_loss_predictor: losses must differ, all are 1",
                       ArgumentError);
}
