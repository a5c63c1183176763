#include "widelimit/gp/selection.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <memory>

#include "gp/problem.hpp"
#include "gp/solvers/band_form.hpp"
#include "gp/solvers/spectrum.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/iterative_regression.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

TEST_CASE("selection: the default grid has two values a decade from 1e-7 to 1e2") {
  const auto grid = regulariser_grid();
  REQUIRE(grid.size() == 19);
  CHECK(grid.front() == 1e-7);
  CHECK(grid[1] == Approx(std::sqrt(10.0) * 1e-7).epsilon(1e-14).scale(0));
  CHECK(grid[14] == Approx(1).epsilon(1e-13).scale(0));
  CHECK(grid.back() == 1e2);
  CHECK_THROWS_WITH_AS((void)regulariser_grid(0, 1, 5),
                       "regulariser_grid: expected 0 < smallest < largest, finite, and count >= 2, got "
                       "smallest 0, largest 1, count 5",
                       ArgumentError);
  CHECK_THROWS_AS((void)regulariser_grid(1, 1, 5), ArgumentError);
  CHECK_THROWS_AS((void)regulariser_grid(1, HUGE_VAL, 5), ArgumentError);
  CHECK_THROWS_AS((void)regulariser_grid(1, 2, 1), ArgumentError);
}

TEST_CASE("selection: one reduction scores as a factorization for each value does") {
  const KernelProblem p = make_problem(60, 25, 3, 31);
  const Matrix<double> validation = random_matrix(25, 3, 32);
  const auto grid = regulariser_grid(1e-5, 10, 7);
  const Selection selection =
      select_regulariser(p.nngp, p.targets, p.nngp_cross, validation, grid, Criterion::mean_squared_error);
  REQUIRE(selection.scores.size() == 7);
  double lowest = HUGE_VAL, chosen = 0;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const Matrix<double> mean =
        Regression::fit(p.nngp, p.targets, RelativeRegulariser(grid[i])).mean(p.nngp_cross);
    const double error = (mean - validation).squaredNorm() / 75;
    CHECK(selection.scores[i].relative_regulariser == grid[i]);
    CHECK(selection.scores[i].above_noise);
    CHECK(selection.scores[i].mean_squared_error == Approx(error).epsilon(1e-9).scale(0));
    CHECK(selection.scores[i].accuracy == accuracy(mean, validation));
    if (error < lowest) lowest = error, chosen = grid[i];
  }
  CHECK(selection.best.value() == chosen);
}

TEST_CASE("selection: accuracy first, mean squared error among equals, or mean squared error alone") {
  // One training input k = 1, y = 1 for class 1 of a single output, prediction cross / (1 + eps). With
  // validation targets of both signs every eps has the same accuracy, so the tie-break decides.
  const Matrix<double> one{{1.0}}, cross{{1.0}, {1.0}};
  const std::vector<double> grid = {0.25, 1, 3};
  const Matrix<double> targets{{0.5}, {0.5}};
  CHECK(select_regulariser(one, one, cross, targets, grid).best.value() == 1);
  CHECK(select_regulariser(one, one, cross, Matrix<double>{{0.8}, {0.8}}, grid).best.value() == 0.25);

  // Two outputs, two orthogonal training inputs with targets (1, 0) and (0, 1): prediction cross / (1 + eps),
  // so the argmax never changes; a third, with variance far from the others', makes the class depend on eps.
  const Matrix<double> k = Vector<double>{{1.0, 100.0}}.asDiagonal(), y{{1.0, 0.0}, {0.0, 1.0}};
  // outputs: 1.2 / (1 + 50.5 eps) against 100 / (100 + 50.5 eps): class 0 for small eps only.
  const Matrix<double> mixed{{1.2, 100.0}}, class_one{{0.0, 0.3}};
  const std::vector<double> two = {1e-6, 0.1};
  const auto scores = select_regulariser(k, y, mixed, class_one, two);
  CHECK(scores.scores[0].accuracy == 0);
  CHECK(scores.scores[1].accuracy == 1);
  CHECK(scores.best.value() == 0.1);
  const Matrix<double> class_zero{{0.31, 0.3}};  // right for small eps, closer for large
  CHECK(select_regulariser(k, y, mixed, class_zero, two).best.value() == 1e-6);
  CHECK(select_regulariser(k, y, mixed, class_zero, two, Criterion::mean_squared_error).best.value() == 0.1);
  CHECK(select_regulariser(one, one, cross, targets, {1, 1.0}).scores.size() == 2);
}

TEST_CASE("selection: values below the errors of the matrix are marked and never chosen") {
  // Eigenvalues 2.5 and -0.5: a Gram matrix with errors of at least 0.5, so that K + lambda I has to reach 5.
  const Matrix<double> k{{1.0, 1.5}, {1.5, 1.0}}, y{{1.0}, {1.0}}, cross{{1.0, 1.0}};
  const auto selection = select_regulariser(k, y, cross, Matrix<double>{{-5.0}},
                                            {0.1, 0.501, 5.499, 5.501, 10}, Criterion::mean_squared_error);
  for (const std::size_t i : {0, 1, 2}) {
    CHECK_FALSE(selection.scores[i].above_noise);
    CHECK(std::isnan(selection.scores[i].accuracy));
    CHECK(std::isnan(selection.scores[i].mean_squared_error));
  }
  CHECK(selection.scores[3].above_noise);
  CHECK(selection.best.value() == 10);
  CHECK(selection.noise_floor == Approx(5.5).epsilon(1e-4).scale(0));
  CHECK_THROWS_WITH_AS(
      (void)select_regulariser(k, y, cross, Matrix<double>{{1.0}}, {0.1, 0.3}),
      // 5.500055 before it is rounded for the message, to either side.
      doctest::Contains(
          "select_regulariser: no value of the grid lifts the 2 x 2 Gram matrix above its own errors: "
          "its smallest eigenvalue is -0.5, its errors are about 0.5; a relative regulariser of 5.5000"),
      NotPositiveDefinite);
  CHECK(select_regulariser(k, y, cross, Matrix<double>{{1.0}}, {5.50005}).best.value() == 5.50005);
}

TEST_CASE("selection: a Gram matrix of float without rank left is scored as the exact one or not at all") {
  // A linear kernel of 8 features and 300 inputs, rounded to float: the other 292 eigenvalues are errors.
  const Eigen::Index n = 300, n_validation = 200, features = 8;
  for (const std::uint64_t seed : {41, 51, 61}) {
    CAPTURE(seed);
    const Matrix<double> x = random_matrix(n + n_validation, features, seed);
    const Matrix<double> truth = x * random_matrix(features, 2, seed + 1);
    const Matrix<double> y = truth + 2 * random_matrix(n + n_validation, 2, seed + 2);
    const Matrix<double> k = x * x.transpose() / features;
    const Matrix<float> rounded = k.cast<float>();
    const auto select = [&](const auto& gram) {
      return select_regulariser(gram.topLeftCorner(n, n), y.topRows(n),
                                gram.bottomLeftCorner(n_validation, n), y.bottomRows(n_validation),
                                regulariser_grid(1e-9, 1, 37));
    };
    const Selection exact = select(k), single = select(rounded);
    int scored = 0;
    for (std::size_t i = 0; i < exact.scores.size(); ++i) {
      if (!single.scores[i].above_noise) continue;
      ++scored;
      CAPTURE(single.scores[i].relative_regulariser);
      CHECK(single.scores[i].mean_squared_error ==
            Approx(exact.scores[i].mean_squared_error).epsilon(5e-3).scale(0));
    }
    CHECK(scored >= 12);  // The floor must not take what is good.
    CHECK(scored <= 24);
    CHECK(single.best.value() >= single.noise_floor);
    CHECK(exact.noise_floor < 1e-9);
    // The same numbers as double are believed, but for the negative eigenvalues that give the errors away.
    const Selection blind = select(Matrix<double>(rounded.cast<double>()));
    CHECK(blind.noise_floor <= single.noise_floor);
    CHECK(blind.noise_floor > 1e-7);
  }
}

namespace {

/// A kernel of one dimension, whose errors are those of floats and some more, as computed kernels have them.
Matrix<float> smooth_float_kernel(Eigen::Index n) {
  Matrix<double> x(n, 1);
  for (Eigen::Index i = 0; i < n; ++i) x(i, 0) = std::sin(0.7 * static_cast<double>(i));
  Matrix<double> error = random_matrix(n, n, 45);
  error = (error + error.transpose()).eval();
  return (squared_exponential(x, x, 0.5) + 3e-7 * error).cast<float>();
}

}  // namespace

TEST_CASE("selection: the spectrum's ends and norm are those of all eigenvalues") {
  const Eigen::Index n = 500;
  const Matrix<float> smooth = smooth_float_kernel(n);
  Matrix<double> rough = make_problem(n, 1, 1, 46).ntk;
  rough.diagonal().array() += 1e-3;
  for (const Matrix<double>& k : {Matrix<double>(smooth.cast<double>()), rough}) {
    const Vector<double> exact = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(k).eigenvalues();
    const Spectrum found = spectrum_of(MatrixOperator<double>(k));
    CHECK(found.smallest >= exact(0) - 1e-12);
    CHECK(found.smallest_known() <= std::max(exact(0) * (1 - 1e-6), 0.6 * exact(0)));
    CHECK(std::abs(found.smallest - exact(0)) <= found.smallest_error + 1e-12);
    CHECK(found.largest == Approx(exact(n - 1)).epsilon(1e-10));
    CHECK(found.frobenius_norm == Approx(k.norm()).epsilon(0.02));
    const Spectrum banded = BandForm(k).spectrum();
    CHECK(banded.smallest == Approx(found.smallest).epsilon(1e-5));
    CHECK(banded.frobenius_norm == Approx(found.frobenius_norm).epsilon(1e-9));
  }
}

TEST_CASE(
    "selection: factorizations and conjugate gradients draw the same line above the errors, and choose "
    "alike") {
  const Eigen::Index n = 500, n_validation = 100;
  const Matrix<float> all = smooth_float_kernel(n + n_validation), k = all.topLeftCorner(n, n);
  Matrix<double> targets(n + n_validation, 1);
  for (Eigen::Index i = 0; i < n + n_validation; ++i)
    targets(i, 0) = std::cos(3 * std::sin(0.7 * static_cast<double>(i)));
  targets += 1e-4 * random_matrix(n + n_validation, 1, 47);
  const Matrix<double> cross = all.bottomLeftCorner(n_validation, n).cast<double>();
  const Matrix<double> y = targets.topRows(n), held = targets.bottomRows(n_validation);
  const Selection factorized =
      select_regulariser(k, y, cross, held, regulariser_grid(), Criterion::mean_squared_error);
  const Selection iterated =
      IterativeRegression::select(std::make_shared<const MatrixOperator<float>>(k), y, cross, held,
                                  regulariser_grid(), Criterion::mean_squared_error)
          .selection;
  CHECK(iterated.noise_floor == Approx(factorized.noise_floor).epsilon(1e-4));
  CHECK(iterated.best.value() == factorized.best.value());
  for (std::size_t i = 0; i < factorized.scores.size(); ++i)
    CHECK(iterated.scores[i].above_noise == factorized.scores[i].above_noise);
  CHECK(factorized.gram.condition_number(1e-3) == Approx(iterated.gram.condition_number(1e-3)).epsilon(1e-6));
}

TEST_CASE("selection: candidates below what the spectrum shows are left out where they break down") {
  // One eigenvalue of -1e-3, in a direction that is hidden from a few Lanczos iterations among 500.
  const Eigen::Index n = 500;
  Vector<double> values(n);
  for (Eigen::Index i = 0; i < n; ++i)
    values(i) = 1e-9 + std::pow(static_cast<double>(i) / static_cast<double>(n), 3.0);
  values(0) = -1e-8;
  const Matrix<double> basis = BandForm(make_problem(n, 1, 1, 74).nngp).take_basis();
  const Matrix<double> k = basis * values.asDiagonal() * basis.transpose(), y = random_matrix(n, 1, 48);
  const Matrix<double> symmetric = 0.5 * (k + k.transpose());
  const Selection chosen =
      select_regulariser(symmetric, y, std::nullopt, Criterion::evidence, {1e-9, 1e-2, 1});
  CHECK(chosen.best.value() >= 1e-2);
  CHECK_FALSE((chosen.scores[0].above_noise && chosen.scores[0].unsolved.empty()));
  CHECK_THROWS_AS((void)select_regulariser(symmetric, y, std::nullopt, Criterion::evidence, {1e-9}),
                  NotPositiveDefinite);
}

TEST_CASE("selection: arguments that do not fit") {
  const KernelProblem p = make_problem(6, 4, 2, 33);
  const Matrix<double> v = random_matrix(4, 2, 34);
  CHECK_THROWS_WITH_AS((void)select_regulariser(p.nngp, p.targets, p.nngp_cross, v, {}),
                       "select_regulariser: the grid must hold at least one value", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)select_regulariser(p.nngp, p.targets, p.nngp_cross, v, {1, 0}),
      "select_regulariser: every value of the grid must be positive and finite, but value 1 (from 0) is 0",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)select_regulariser(p.nngp, p.targets, p.nngp_cross, v.topRows(3)),
                       "select_regulariser: the validation targets must be [4, 2], got [3, 2]",
                       ArgumentError);
  CHECK_THROWS_AS((void)select_regulariser(p.nngp, p.targets, p.nngp_cross.leftCols(5), v), ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)select_regulariser(p.nngp, p.targets, Matrix<double>(0, 6), Matrix<double>(0, 2)),
      "select_regulariser: there must be validation inputs, got none", ArgumentError);
  CHECK_THROWS_AS((void)select_regulariser(Matrix<double>::Zero(6, 6), p.targets, p.nngp_cross, v),
                  ArgumentError);
}

TEST_CASE("selection: targets that are all 0 have no density") {
  const KernelProblem p = make_problem(6, 4, 2, 35);
  const Matrix<double> none = 0 * p.targets, v = random_matrix(4, 2, 36);
  const ValidationKernel validation{p.nngp_cross, p.nngp_test.diagonal(), v};
  const char* const message = "select_regulariser: the targets are all 0, so that no amplitude fits them";
  for (const Criterion criterion :
       {Criterion::evidence, Criterion::leave_one_out, Criterion::negative_log_predictive_density})
    CHECK_THROWS_WITH_AS((void)select_regulariser(p.nngp, none, validation, criterion),
                         doctest::Contains(message), ArgumentError);
  // Errors are finite, and no score is infinite.
  const Selection by_error = select_regulariser(p.nngp, none, validation, Criterion::mean_squared_error);
  for (const RegulariserScore& score : by_error.scores) {
    CHECK(!std::isinf(score.log_marginal_likelihood));
    if (score.above_noise) CHECK(score.mean_squared_error == Approx(v.squaredNorm() / 8));
  }
}
