#include "widelimit/gp/inference.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

std::unique_ptr<GramSource> kernels_in_memory(const Matrix<double>& nngp, const Matrix<double>& ntk) {
  GramResult<double> kernels;
  kernels.nngp = nngp;
  kernels.ntk = ntk;
  return gram_in_memory(std::move(kernels));
}

std::vector<KernelPrediction> inferred(const KernelProblem& p, const InferenceOptions& options,
                                       const std::stop_token& stop = {},
                                       const MakeSolver& solver = direct_solver) {
  GramSources grams;
  grams.train = kernels_in_memory(p.nngp, p.ntk);
  grams.test = kernels_in_memory(p.nngp_cross, p.ntk_cross);
  grams.test_variances = p.nngp_test.diagonal();
  const std::optional<Matrix<double>> truth = random_matrix(p.nngp_cross.rows(), p.targets.cols(), 8);
  return infer({TargetKind::numbers, p.targets, nullptr, truth}, options, std::move(grams), solver, stop);
}

}  // namespace

TEST_CASE("inference: numbers are standardised, and predictions come back in their units") {
  KernelProblem p = make_problem(30, 6, 2, 3);
  const InferenceOptions options{.times = {1.5}};
  const auto before = inferred(p, options);
  REQUIRE(before.size() == 3);
  CHECK(before[0].name == "nngp");
  CHECK(before[2].name == "ntk_time0");
  CHECK(before[0].selections.size() == 2);
  CHECK(before[2].selections.empty());
  p.targets = (50 * p.targets).array() + 7000;
  const auto after = inferred(p, options);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(relative_difference((after[i].mean.array() - 7000) / 50, before[i].mean) < 1e-8);
    CHECK(relative_difference(after[i].variance / 2500, before[i].variance) < 1e-8);
    CHECK(after[i].scores->mean_squared_error > 1e6);
  }
  CHECK(after[0].selections[1].scores[12].leave_one_out ==
        doctest::Approx(before[0].selections[1].scores[12].leave_one_out + std::log(50)).epsilon(1e-8));
}

TEST_CASE("inference: targets as they are, with a given regulariser, are a Regression") {
  const KernelProblem p = make_problem(20, 4, 1, 6);
  InferenceOptions options{.kernels = Kernels::nngp, .regulariser = 0.05};
  options.targets_as_they_are = true;
  const auto found = inferred(p, options);
  const Regression expected = Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.05));
  CHECK(found[0].mean == expected.mean(p.nngp_cross));
  CHECK(found[0].variance.col(0) == expected.variance(p.nngp_cross, p.nngp_test.diagonal()));
  CHECK(*found[0].log_marginal_likelihood == expected.log_marginal_likelihood());
}

TEST_CASE("inference: Student's t distribution where the amplitude is fitted to numbers") {
  const KernelProblem p = make_problem(12, 4, 1, 6);
  const auto laws_with = [&p](const InferenceOptions& options) {
    std::vector<ObservationLaw> laws;
    for (const KernelPrediction& found : inferred(p, options)) laws.push_back(found.law);
    return laws;
  };
  const ObservationLaw fitted = ObservationLaw::of_fitted_amplitude(12, true);
  CHECK(laws_with({.times = {1.5}}) == std::vector<ObservationLaw>(3, fitted));
  InferenceOptions as_they_are{.kernels = Kernels::nngp};
  as_they_are.targets_as_they_are = true;
  CHECK(laws_with(as_they_are) == std::vector{ObservationLaw{12, 1}});
  CHECK(laws_with({.kernels = Kernels::nngp, .amplitude = 2})[0].is_normal());
  InferenceOptions known{.kernels = Kernels::nngp};
  known.noise_variances = Vector<double>::Constant(12, 0.1);
  CHECK(laws_with(known)[0].is_normal());

  const Matrix<double> truth = random_matrix(p.nngp_cross.rows(), p.targets.cols(), 8);
  const KernelPrediction found = inferred(p, {.kernels = Kernels::nngp})[0];
  CHECK(found.scores->negative_log_predictive_density ==
        negative_log_predictive_density(
            found.mean, found.variance.rowwise() + found.noise_variance.transpose(), truth, fitted));
}

TEST_CASE("inference: what means nothing is refused, and a stop is heard") {
  CHECK_THROWS_WITH_AS(require_criterion(Criterion::accuracy, TargetKind::numbers),
                       doctest::Contains("choose by loo"), ArgumentError);
  require_criterion(Criterion::accuracy, TargetKind::classes);
  Matrix<double> targets = random_matrix(5, 2, 1);
  targets.col(1).setConstant(3);
  CHECK_THROWS_WITH_AS(require_varying_targets(targets, TargetKind::numbers, false, "give one"),
                       doctest::Contains("of output 1 (from 0) are all 3"), ArgumentError);
  require_varying_targets(targets, TargetKind::numbers, true, "give one");
  for (const double size : {1e-200, 1e200})
    CHECK_THROWS_WITH_AS(
        require_varying_targets(size * random_matrix(5, 1, 1), TargetKind::numbers, false, "give one"),
        doctest::Contains("whose square leaves the range of double: give them in other units"),
        ArgumentError);
  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS((void)inferred(make_problem(10, 2, 1, 2), {}, source.get_token()), Cancelled);
}

TEST_CASE("inference: weights of rows, with every solver, are the noise over them") {
  const KernelProblem p = make_problem(30, 6, 1, 5);
  InferenceOptions options{.kernels = Kernels::nngp, .regulariser = 0.05, .amplitude = 1};
  options.targets_as_they_are = true;
  options.weights = random_matrix(30, 1, 9).cwiseAbs().array() + 0.2;
  const double lambda = 0.05 * (options.weights.array() * p.nngp.diagonal().array()).mean();
  Matrix<double> noisy = p.nngp;
  noisy.diagonal().array() += lambda / options.weights.array();
  const Matrix<double> solved = noisy.ldlt().solve(p.targets),
                       responses = noisy.ldlt().solve(p.nngp_cross.transpose());
  const Vector<double> variance =
      p.nngp_test.diagonal() - p.nngp_cross.cwiseProduct(responses.transpose()).rowwise().sum();
  for (const auto& solver :
       {MakeSolver(direct_solver), MakeSolver([](const std::string&kernel, GramSources&grams,
                                                 const SolverTargets&targets, const SolverOptions&how, bool) {
          return iterative_solver(kernel, grams, targets, how);
        })}) {
    const auto found = inferred(p, options, {}, solver);
    CHECK(relative_difference(found[0].mean, p.nngp_cross * solved) < 1e-7);
    CHECK(relative_difference(found[0].variance, variance) < 1e-7);
    CHECK(found[0].noise_variance(0) == doctest::Approx(lambda));
  }
}

TEST_CASE("inference: known noise is that of the rows, and its amplitude the most likely one") {
  const KernelProblem p = make_problem(25, 5, 2, 7);
  InferenceOptions options{.kernels = Kernels::nngp};
  options.targets_as_they_are = true;
  options.noise_variances = 0.3 * random_matrix(25, 1, 10).cwiseAbs().array() + 0.05;
  const auto likelihood = [&](double amplitude, Index output) {
    Matrix<double> covariance = amplitude * p.nngp;
    covariance.diagonal() += options.noise_variances;
    const Eigen::LLT<Matrix<double>> factor(covariance);
    const Vector<double> y = p.targets.col(output);
    return -0.5 * (y.dot(factor.solve(y)) + 25 * std::log(2 * 3.141592653589793)) -
           factor.matrixLLT().diagonal().array().log().sum();
  };
  const auto found = inferred(p, options);
  CHECK(found[0].selections.empty());
  double sum = 0;
  for (const Index c : {0, 1}) {
    const double amplitude = found[0].amplitude(c);
    sum += likelihood(amplitude, c);
    CHECK(likelihood(amplitude, c) > likelihood(1.05 * amplitude, c));
    CHECK(likelihood(amplitude, c) > likelihood(0.95 * amplitude, c));
    Matrix<double> covariance = amplitude * p.nngp;
    covariance.diagonal() += options.noise_variances;
    const Matrix<double> mean = amplitude * p.nngp_cross * covariance.ldlt().solve(p.targets.col(c));
    CHECK(relative_difference(found[0].mean.col(c), mean) < 1e-8);
    CHECK(found[0].noise_variance(c) == doctest::Approx(options.noise_variances.mean()));
  }
  CHECK(*found[0].log_marginal_likelihood == doctest::Approx(sum).epsilon(1e-9));
}

TEST_CASE("inference: rows that do not fit") {
  const KernelProblem p = make_problem(10, 2, 1, 8);
  const auto fails = [&](InferenceOptions options, const char* message) {
    CHECK_THROWS_WITH_AS((void)inferred(p, options), doctest::Contains(message), ArgumentError);
  };
  InferenceOptions options{.kernels = Kernels::nngp};
  options.weights = Vector<double>::Ones(9);
  fails(options, "infer: expected weights for each of 10 training inputs, got 9");
  options.weights = Vector<double>::Ones(10);
  options.kernels = Kernels::both;
  fails(options, "are for the NNGP");
  options.kernels = Kernels::nngp;
  options.noise_variances = Vector<double>::Ones(10);
  fails(options, "expected noise variances or weights, got both");
  options.weights = {};
  options.regulariser = 0.1;
  fails(options, "expected noise variances, or a regulariser or a noise; got both");
}

TEST_CASE("inference: a refit has the choice of data that were held back, and predicts from both") {
  const KernelProblem p = make_problem(30, 6, 2, 3);
  constexpr Index n = 22, held = 8;
  const Matrix<double> train = p.targets.topRows(n), validation = p.targets.bottomRows(held);
  const auto grams = [&](bool refit) {
    GramSources some;
    some.train = kernels_in_memory(p.nngp.topLeftCorner(n, n), p.ntk.topLeftCorner(n, n));
    some.validation = kernels_in_memory(p.nngp.bottomLeftCorner(held, n), p.ntk.bottomLeftCorner(held, n));
    some.validation_variances = p.nngp.diagonal().tail(held);
    some.test = kernels_in_memory(p.nngp_cross.leftCols(n), p.ntk_cross.leftCols(n));
    some.test_variances = p.nngp_test.diagonal();
    if (refit)
      some.joined = [&p] {
        GramSources both;
        both.train = kernels_in_memory(p.nngp, p.ntk);
        both.test = kernels_in_memory(p.nngp_cross, p.ntk_cross);
        both.test_variances = p.nngp_test.diagonal();
        return both;
      };
    return some;
  };
  InferenceOptions options{.criterion = Criterion::mean_squared_error, .times = {2}, .refit = true};
  const std::optional<Matrix<double>> none;
  const auto run = [&](bool refit) {
    options.refit = refit;
    return infer({TargetKind::numbers, train, &validation, none}, options, grams(refit), direct_solver);
  };
  const auto refitted = run(true), held_back = run(false);
  REQUIRE(refitted.size() == 3);
  for (std::size_t i = 0; i < refitted.size(); ++i) {
    CAPTURE(i);
    CHECK(refitted[i].regulariser == held_back[i].regulariser);
    CHECK(refitted[i].selections.size() == held_back[i].selections.size());
  }
  // Each output is what a fit to all data with its regulariser makes of it.
  for (const Index output : {0, 1}) {
    KernelProblem alone = p;
    alone.targets = p.targets.col(output);
    for (const std::size_t kernel : {0, 1}) {
      InferenceOptions given{.kernels = kernel == 0 ? Kernels::nngp : Kernels::ntk,
                             .regulariser = held_back[kernel].regulariser(output)};
      const auto expected = inferred(alone, given);
      CHECK(relative_difference(refitted[kernel].mean.col(output), expected[0].mean) < 1e-12);
      CHECK(relative_difference(refitted[kernel].variance.col(output), expected[0].variance) < 1e-12);
    }
  }
  options.refit = true;
  CHECK_THROWS_WITH_AS(static_cast<void>(infer({TargetKind::numbers, train, &validation, none}, options,
                                               grams(false), direct_solver)),
                       "infer: refit takes validation data, and the kernels of both", ArgumentError);
}
