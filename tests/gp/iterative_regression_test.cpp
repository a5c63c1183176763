#include "widelimit/gp/iterative_regression.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("iterative regression: means, variances and amplitude of Regression and ConvergedFlow to 1e-8") {
  const KernelProblem p = make_problem(150, 40, 3, 95);
  const Noise noise = RelativeRegulariser(1e-3);
  const auto nngp = std::make_shared<const MatrixOperator<double>>(p.nngp);
  const auto ntk = std::make_shared<const MatrixOperator<double>>(p.ntk);
  const Vector<double> prior = p.nngp_test.diagonal();
  const IterativeRegression found = IterativeRegression::fit(nngp, p.targets, noise);
  const Regression expected = Regression::fit(p.nngp, p.targets, noise);
  CHECK(relative_difference(found.mean(p.nngp_cross), expected.mean(p.nngp_cross)) < 1e-8);
  CHECK(relative_difference(found.variance(p.nngp_cross, prior), expected.variance(p.nngp_cross, prior)) <
        1e-8);
  CHECK(found.amplitude() == doctest::Approx(expected.amplitude()).epsilon(1e-9));
  CHECK(found.with_amplitude(3).noise_variance() ==
        doctest::Approx(expected.with_amplitude(3).noise_variance()).epsilon(1e-12));
  const IterativeRegression trained = IterativeRegression::fit(ntk, p.targets, noise);
  const ConvergedFlow flow = ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise);
  CHECK(relative_difference(trained.mean(p.ntk_cross), flow.mean(p.ntk_cross)) < 1e-8);
  CHECK(relative_difference(trained.with_amplitude(1).flow_variance(*nngp, p.nngp_cross, p.ntk_cross, prior),
                            flow.variance(p.nngp_cross, p.ntk_cross, prior)) < 1e-8);
  CHECK(trained.flow_leave_one_out_amplitude(*nngp) ==
        doctest::Approx(flow.leave_one_out_amplitude()).epsilon(1e-8));
  const Matrix<double> smaller = p.nngp.topLeftCorner(149, 149);
  CHECK_THROWS_AS((void)trained.flow_leave_one_out_amplitude(MatrixOperator<double>(smaller)), ArgumentError);
  CHECK_THROWS_AS((void)found.mean(p.nngp_cross.leftCols(149)), ArgumentError);
  CHECK_THROWS_AS((void)found.variance(p.nngp_cross, prior.head(39)), ArgumentError);
}

TEST_CASE("iterative regression: the regulariser that one reduction to a band chooses") {
  const KernelProblem p = make_problem(120, 60, 3, 96);
  const Matrix<double> validation = random_matrix(60, 3, 97);
  const auto grid = regulariser_grid(1e-5, 10, 13);
  const auto gram = std::make_shared<const MatrixOperator<double>>(p.ntk);
  for (const auto criterion : {Criterion::accuracy, Criterion::mean_squared_error}) {
    const Selection expected = select_regulariser(p.ntk, p.targets, p.ntk_cross, validation, grid, criterion);
    const auto chosen = IterativeRegression::select(gram, p.targets, p.ntk_cross, validation, grid, criterion,
                                                    {.relative_residual = 1e-11});
    const Selection& found = chosen.selection;
    CHECK(found.best.value() == expected.best.value());
    for (std::size_t i = 0; i < grid.size(); ++i) {
      CHECK(found.scores[i].accuracy == expected.scores[i].accuracy);
      CHECK(found.scores[i].mean_squared_error ==
            doctest::Approx(expected.scores[i].mean_squared_error).epsilon(1e-8));
    }
    const auto fitted = IterativeRegression::fit(gram, p.targets, found.best, {.relative_residual = 1e-11});
    CHECK(relative_difference(chosen.regression.weights(), fitted.weights()) < 1e-8);
    CHECK(chosen.regression.amplitude() == doctest::Approx(fitted.amplitude()).epsilon(1e-8));
    CHECK(chosen.regression.relative_residual() <= 1e-11);
    CHECK(chosen.regression.passes() >= fitted.passes());
  }
  CHECK_THROWS_WITH_AS(
      (void)IterativeRegression::select(gram, p.targets, p.ntk_cross, validation, grid, Criterion::evidence),
      "select_regulariser: conjugate gradients serve the criteria accuracy and "
      "mean_squared_error, got evidence",
      ArgumentError);
  const Matrix<float> rounded = p.ntk.cast<float>();
  const double float_epsilon = std::numeric_limits<float>::epsilon();
  const double floor = IterativeRegression::select(std::make_shared<const MatrixOperator<float>>(rounded),
                                                   p.targets, p.ntk_cross, validation, grid)
                           .selection.noise_floor;
  const double norm = p.ntk.norm() / std::sqrt(120.0) / p.ntk.diagonal().mean();
  CHECK(floor == doctest::Approx(10 * float_epsilon * norm).epsilon(0.2));
}

TEST_CASE("iterative regression: cross Gram matrices may come row by row, and are checked") {
  const KernelProblem p = make_problem(90, 700, 2, 98);
  const auto gram = std::make_shared<const MatrixOperator<double>>(p.nngp);
  const Noise noise = RelativeRegulariser(1e-2);
  const IterativeRegression regression = IterativeRegression::fit(gram, p.targets, noise);
  Index largest = 0;
  const CrossGram cross(700, 90, [&](Index first, Index count) -> Matrix<double> {
    largest = std::max(largest, count);
    return p.nngp_cross.middleRows(first, count);
  });
  const Vector<double> prior = p.nngp_test.diagonal();
  CHECK(relative_difference(regression.mean(cross), p.nngp_cross * regression.weights()) < 1e-12);
  CHECK(relative_difference(regression.variance(cross, prior), regression.variance(p.nngp_cross, prior)) ==
        0);
  CHECK(largest == 512);
  Matrix<double> hole = p.nngp_cross;
  hole(601, 3) = NAN;
  CHECK_THROWS_WITH_AS((void)regression.mean(hole), doctest::Contains("(89, 3)"), ArgumentError);
  const CrossGram narrow(
      700, 90, [](Index, Index count) -> Matrix<double> { return Matrix<double>::Zero(count, 89); });
  CHECK_THROWS_WITH_AS((void)regression.mean(narrow), doctest::Contains("must be [512, 90], got [512, 89]"),
                       ArgumentError);
}
