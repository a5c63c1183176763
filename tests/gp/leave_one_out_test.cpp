// Closed forms against n refits, and scores of regularisers against the models that they stand for.
#include "widelimit/gp/leave_one_out.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <memory>
#include <numbers>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/selection.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;
using Eigen::Index;

namespace {

/// All rows (and columns) but one.
Matrix<double> without_row(const Matrix<double>& matrix, Index i) {
  Matrix<double> rest(matrix.rows() - 1, matrix.cols());
  rest << matrix.topRows(i), matrix.bottomRows(matrix.rows() - 1 - i);
  return rest;
}

Matrix<double> without(const Matrix<double>& gram, Index i) {
  return without_row(without_row(gram, i).transpose(), i).transpose();
}

Matrix<double> row_without(const Matrix<double>& gram, Index i) {
  return without_row(gram.row(i).transpose(), i).transpose();
}

}  // namespace

TEST_CASE("leave-one-out of a regression equals n refits") {
  const KernelProblem p = make_problem(23, 0, 2, 41);
  const double lambda = 0.04, amplitude = 1.7;
  const LeaveOneOut others =
      Regression::fit(p.nngp, p.targets, AbsoluteNoise(lambda)).with_amplitude(amplitude).leave_one_out();
  for (Index i = 0; i < 23; ++i) {
    CAPTURE(i);
    const Regression rest =
        Regression::fit(without(p.nngp, i), without_row(p.targets, i), AbsoluteNoise(lambda))
            .with_amplitude(amplitude);
    const Matrix<double> cross = row_without(p.nngp, i);
    CHECK((p.targets.row(i) - others.residuals.row(i) - rest.mean(cross)).norm() < 1e-11);
    const double variance = rest.variance(cross, p.nngp.diagonal().segment(i, 1))(0) + amplitude * lambda;
    CHECK(others.variances(i) == Approx(variance).epsilon(1e-11).scale(0));
  }
}

TEST_CASE("leave-one-out of more inputs than a block: the same by the whole inverse") {
  const KernelProblem p = make_problem(600, 0, 1, 42);
  const Regression fit = Regression::fit(p.nngp, p.targets, AbsoluteNoise(0.5));
  Matrix<double> noisy = p.nngp;
  noisy.diagonal().array() += 0.5;
  const Matrix<double> inverse = noisy.llt().solve(Matrix<double>::Identity(600, 600));
  CHECK(relative_difference(fit.leave_one_out().variances, inverse.diagonal().cwiseInverse()) < 1e-10);
}

TEST_CASE("leave-one-out of some inputs: the rows of all, by every solver") {
  const KernelProblem p = make_problem(60, 0, 2, 46);
  const Noise noise = RelativeRegulariser(0.05);
  const std::vector<Index> some{3, 0, 59, 17};
  const auto check = [&](const LeaveOneOut& chosen, const LeaveOneOut& all) {
    REQUIRE(chosen.variances.size() == 4);
    CHECK(relative_difference(chosen.residuals, all.residuals(some, Eigen::all)) < 1e-8);
    CHECK(relative_difference(chosen.variances, all.variances(some)) < 1e-8);
  };
  const Regression regression = Regression::fit(p.nngp, p.targets, noise);
  check(regression.leave_one_out(some), regression.leave_one_out());
  const LeaveOneOut all = GradientFlow::fit(p.nngp, p.ntk, p.targets, noise).leave_one_out();
  check(GradientFlow::fit(p.nngp, p.ntk, p.targets, noise).leave_one_out(some), all);
  for (const auto holds : {ConvergedFlow::Holds::inverse, ConvergedFlow::Holds::factor})
    check(ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise, 0, holds).leave_one_out(some), all);
  const auto iterated =
      IterativeRegression::fit(std::make_shared<const MatrixOperator<double>>(p.ntk), p.targets, noise);
  check(iterated.flow_leave_one_out(MatrixOperator<double>(p.nngp), some), all);
  CHECK_THROWS_WITH_AS((void)regression.leave_one_out(std::vector<Index>{60}),
                       "Regression::leave_one_out: expected inputs of 0 .. 59, got 60", ArgumentError);
  CHECK_THROWS_AS((void)regression.leave_one_out(std::vector<Index>{}), ArgumentError);
  CHECK(evenly_spaced_inputs(3, 3) == all_inputs(3));
  CHECK(evenly_spaced_inputs(7, 3) == std::vector<Index>{0, 2, 4});
  CHECK(representative_inputs(4) == std::vector<Index>{0, 1, 2, 3});
  const std::vector<Index> spread = representative_inputs(2500);
  CHECK(spread.size() == 1000);
  CHECK(spread[1] == 2);
  CHECK(spread.back() == 2497);
}

TEST_CASE("leave-one-out of more than 1,000 inputs: the choice scores 1,000, and hands on what it found") {
  const KernelProblem p = make_problem(1100, 0, 1, 47);
  const std::vector<double> grid{1e-2, 0.3};
  const std::vector<Index> inputs = representative_inputs(1100);
  const Selection prior = select_regulariser(p.nngp, p.targets, std::nullopt, Criterion::leave_one_out, grid);
  const Regression fit = Regression::fit(p.nngp, p.targets, prior.best);
  const LeaveOneOut unit = fit.with_amplitude(1).leave_one_out(inputs);
  CHECK(relative_difference(prior.others.residuals, unit.residuals) < 1e-8);
  CHECK(relative_difference(prior.others.variances, unit.variances) < 1e-8);
  for (const RegulariserScore& score : prior.scores)
    if (score.relative_regulariser == prior.best.value())
      CHECK(score.leave_one_out ==
            Approx(fit.leave_one_out(inputs).negative_log_predictive_density()).epsilon(1e-8));
  const Selection trained =
      select_flow_regulariser(p.nngp, p.ntk, p.targets, std::nullopt, Criterion::leave_one_out, grid);
  const LeaveOneOut flow =
      ConvergedFlow::fit(p.nngp, p.ntk, p.targets, trained.best, 0, ConvergedFlow::Holds::factor)
          .leave_one_out(inputs);
  CHECK(relative_difference(trained.others.residuals, flow.residuals) < 1e-8);
  CHECK(relative_difference(trained.others.variances, flow.variances) < 1e-8);
}

TEST_CASE("leave-one-out of trained networks equals n refits") {
  const KernelProblem p = make_problem(19, 0, 2, 43);
  const double lambda = 0.06, amplitude = 0.4;
  const LeaveOneOut others = GradientFlow::fit(p.nngp, p.ntk, p.targets, AbsoluteNoise(lambda))
                                 .with_amplitude(amplitude)
                                 .leave_one_out();
  for (Index i = 0; i < 19; ++i) {
    CAPTURE(i);
    const GradientFlow rest = GradientFlow::fit(without(p.nngp, i), without(p.ntk, i),
                                                without_row(p.targets, i), AbsoluteNoise(lambda))
                                  .with_amplitude(amplitude);
    const Matrix<double> nngp = row_without(p.nngp, i), ntk = row_without(p.ntk, i);
    CHECK((p.targets.row(i) - others.residuals.row(i) - rest.mean(infinite_time, ntk)).norm() < 1e-11);
    const double variance =
        rest.variance(infinite_time, nngp, ntk, p.nngp.diagonal().segment(i, 1))(0) + amplitude * lambda;
    CHECK(others.variances(i) == Approx(variance).epsilon(1e-10).scale(0));
  }
}

TEST_CASE("leave-one-out scores are means of what they say") {
  const LeaveOneOut others{Matrix<double>{{1.0, -2.0}, {0.5, 0.0}}, Vector<double>{{2.0, 0.5}}};
  CHECK(others.mean_squared_error() == Approx(5.25 / 4));
  const double first = 2 * std::log(2 * std::numbers::pi * 2) + 5 / 2.0;
  const double second = 2 * std::log(2 * std::numbers::pi * 0.5) + 0.25 / 0.5;
  CHECK(others.negative_log_predictive_density() == Approx((first + second) / 4));
}

TEST_CASE("scores of a grid are those of regressions fitted with its values") {
  const KernelProblem p = make_problem(30, 7, 2, 44);
  const Matrix<double> validation_targets = random_matrix(7, 2, 45);
  const std::vector<double> grid{1e-4, 1e-2, 0.3};
  const Selection selection = select_regulariser(
      p.nngp, p.targets, ValidationKernel{p.nngp_cross, p.nngp_test.diagonal(), validation_targets},
      Criterion::leave_one_out, grid);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const Regression fit = Regression::fit(p.nngp, p.targets, RelativeRegulariser(grid[i]));
    const RegulariserScore& score = selection.scores[i];
    CHECK(score.log_marginal_likelihood == Approx(fit.log_marginal_likelihood()).epsilon(1e-9).scale(0));
    CHECK(score.leave_one_out ==
          Approx(fit.leave_one_out().negative_log_predictive_density()).epsilon(1e-9).scale(0));
    CHECK(score.mean_squared_error ==
          Approx(mean_squared_error(fit.mean(p.nngp_cross), validation_targets)).epsilon(1e-9).scale(0));
    CHECK(score.negative_log_predictive_density ==
          Approx(negative_log_predictive_density(fit.mean(p.nngp_cross),
                                                 fit.variance(p.nngp_cross, p.nngp_test.diagonal()),
                                                 fit.noise_variance(), validation_targets))
              .epsilon(1e-9)
              .scale(0));
  }
}

TEST_CASE("scores of a grid are those of trained networks with its values") {
  const KernelProblem p = make_problem(26, 5, 2, 46);
  const Matrix<double> validation_targets = random_matrix(5, 2, 47);
  const std::vector<double> grid{1e-3, 0.1};
  const Selection selection = select_flow_regulariser(
      p.nngp, p.ntk, p.targets,
      ValidationKernels{p.nngp_cross, p.ntk_cross, p.nngp_test.diagonal(), validation_targets},
      Criterion::negative_log_predictive_density, grid);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    GradientFlow fit = GradientFlow::fit(p.nngp, p.ntk, p.targets, RelativeRegulariser(grid[i]));
    fit = fit.with_amplitude(fit.leave_one_out_amplitude());
    const RegulariserScore& score = selection.scores[i];
    CHECK(score.leave_one_out ==
          Approx(fit.leave_one_out().negative_log_predictive_density()).epsilon(1e-9).scale(0));
    CHECK(std::isnan(score.log_marginal_likelihood));
    const Matrix<double> mean = fit.mean(infinite_time, p.ntk_cross);
    const Vector<double> variance =
        fit.variance(infinite_time, p.nngp_cross, p.ntk_cross, p.nngp_test.diagonal());
    CHECK(score.mean_squared_error ==
          Approx(mean_squared_error(mean, validation_targets)).epsilon(1e-9).scale(0));
    CHECK(score.negative_log_predictive_density ==
          Approx(
              negative_log_predictive_density(mean, variance, fit.regulariser_variance(), validation_targets))
              .epsilon(1e-9)
              .scale(0));
  }
}

TEST_CASE("each criterion takes the best of its own scores, and refuses what it cannot have") {
  const KernelProblem p = make_problem(30, 7, 2, 48);
  const auto select = [&](Criterion criterion) {
    return select_regulariser(p.nngp, p.targets,
                              ValidationKernel{p.nngp_cross, p.nngp_test.diagonal(), random_matrix(7, 2, 49)},
                              criterion);
  };
  const auto chosen = [](const Selection& selection) {
    for (const RegulariserScore& score : selection.scores)
      if (score.relative_regulariser == selection.best.value()) return score;
    FAIL("not in the grid");
    return selection.scores[0];
  };
  for (const RegulariserScore& score : select(Criterion::evidence).scores)
    if (score.above_noise)
      CHECK(score.log_marginal_likelihood <= chosen(select(Criterion::evidence)).log_marginal_likelihood);
  for (const RegulariserScore& score : select(Criterion::leave_one_out).scores)
    if (score.above_noise)
      CHECK(score.leave_one_out >= chosen(select(Criterion::leave_one_out)).leave_one_out);
  const Selection by_density = select(Criterion::negative_log_predictive_density);
  for (const RegulariserScore& score : by_density.scores)
    if (score.above_noise)
      CHECK(score.negative_log_predictive_density >= chosen(by_density).negative_log_predictive_density);
  CHECK(std::isnan(by_density.scores[0].leave_one_out));

  CHECK_THROWS_WITH_AS((void)select_regulariser(p.nngp, p.targets, std::nullopt, Criterion::accuracy),
                       doctest::Contains("the criterion accuracy takes validation data"), ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)select_flow_regulariser(p.nngp, p.ntk, p.targets, std::nullopt, Criterion::evidence),
      doctest::Contains("trained networks have no evidence"), ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)select_regulariser(p.nngp, p.targets, p.nngp_cross, random_matrix(7, 2, 49), regulariser_grid(),
                               Criterion::negative_log_predictive_density),
      doctest::Contains("takes the variances"), ArgumentError);
  CHECK_THROWS_AS(
      (void)select_flow_regulariser(p.nngp_cross, p.ntk, p.targets, std::nullopt, Criterion::leave_one_out),
      ArgumentError);
}

TEST_CASE("posteriors made of their parts are the same bits, parts that do not fit are refused") {
  const KernelProblem p = make_problem(20, 4, 2, 50);
  const Vector<double> prior = p.nngp_test.diagonal();
  const Regression fit = Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.01));
  const Regression::Parts parts = fit.parts();
  const Regression again = Regression::from_parts(parts);
  CHECK(again.mean(p.nngp_cross) == fit.mean(p.nngp_cross));
  CHECK(again.variance(p.nngp_cross, prior) == fit.variance(p.nngp_cross, prior));
  CHECK(again.log_marginal_likelihood() == fit.log_marginal_likelihood());
  CHECK(again.noise_variance() == fit.noise_variance());
  Matrix<double> noisy = p.nngp;
  noisy.diagonal().array() += parts.lambda;
  CHECK(relative_difference(parts.factor.transpose() * parts.factor, noisy) < 1e-14);
  Regression::Parts bad = parts;
  bad.factor.diagonal()(3) = -1;
  CHECK_THROWS_WITH_AS((void)Regression::from_parts(bad), doctest::Contains("must be positive"),
                       ArgumentError);
  bad = parts;
  bad.lambda = std::nan("");
  CHECK_THROWS_WITH_AS((void)Regression::from_parts(bad), doctest::Contains("lambda"), ArgumentError);
  bad = parts;
  bad.factor = Matrix<double>::Identity(19, 19);
  CHECK_THROWS_AS((void)Regression::from_parts(bad), ArgumentError);

  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, RelativeRegulariser(0.01), 0.5);
  const GradientFlow flow_again = GradientFlow::from_parts(flow.parts());
  for (const double time : {0.0, 3.0, infinite_time}) {
    CHECK(flow_again.mean(time, p.ntk_cross) == flow.mean(time, p.ntk_cross));
    CHECK(flow_again.variance(time, p.nngp_cross, p.ntk_cross, prior) ==
          flow.variance(time, p.nngp_cross, p.ntk_cross, prior));
    CHECK(flow.mean(time, p.ntk_cross).isApprox(p.ntk_cross * flow.weights(time), 1e-12));
  }
  GradientFlow::Parts bad_flow = flow.parts();
  bad_flow.eigenvectors(2, 2) = std::nan("");
  CHECK_THROWS_WITH_AS((void)GradientFlow::from_parts(bad_flow), doctest::Contains("the eigenvectors"),
                       ArgumentError);
}
