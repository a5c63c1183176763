#include "distributed/distributed_regression.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::distributed;
using namespace widelimit::gp_test;

namespace {

Tile tiles_of(const Matrix<double>& matrix) {
  return [&matrix](Index row, Index rows, Index column, Index columns) -> Matrix<double> {
    return matrix.block(row, column, rows, columns);
  };
}

}  // namespace

TEST_CASE("distributed: means, variances and evidence of Regression, for blocks that do and do not fit") {
  const ProcessGrid grid(MPI_COMM_WORLD);
  const KernelProblem p = make_problem(130, 45, 3, 101);
  const Vector<double> prior = p.nngp_test.diagonal();
  for (const Index block : {1, 7, 16, 65, 256}) {
    CAPTURE(block);
    for (const gp::Noise& noise :
         {gp::Noise(gp::RelativeRegulariser(1e-3)), gp::Noise(gp::AbsoluteNoise(0.2))}) {
      const DistributedRegression found(
          grid,
          [&](Index row, Index rows, Index column, Index columns) -> Matrix<double> {
            CHECK(row >= column);
            return p.nngp.block(row, column, rows, columns);
          },
          p.targets, noise, block);
      const gp::Regression expected = gp::Regression::fit(p.nngp, p.targets, noise);
      CHECK(relative_difference(found.weights(), expected.weights()) < 1e-8);
      CHECK(relative_difference(found.mean(p.nngp_cross), expected.mean(p.nngp_cross)) < 1e-8);
      CHECK(relative_difference(found.variance(p.nngp_cross, prior), expected.variance(p.nngp_cross, prior)) <
            1e-8);
      CHECK(found.log_marginal_likelihood() ==
            doctest::Approx(expected.log_marginal_likelihood()).epsilon(1e-10));
      CHECK(found.amplitude() == doctest::Approx(expected.amplitude()).epsilon(1e-10));
      CHECK(found.noise_variance() == doctest::Approx(expected.noise_variance()).epsilon(1e-10));
      const std::vector<Index> some{0, 3, 4, 59};
      const gp::LeaveOneOut others = found.leave_one_out(some), exact = expected.leave_one_out(some);
      CHECK(relative_difference(others.residuals, exact.residuals) < 1e-8);
      CHECK(relative_difference(others.variances, exact.variances) < 1e-8);
      CHECK_THROWS_AS(static_cast<void>(found.leave_one_out(std::vector<Index>{1000})), ArgumentError);
    }
  }
}

TEST_CASE("distributed: tiles that all ranks see, and converged networks") {
  const ProcessGrid grid(MPI_COMM_WORLD);
  const KernelProblem p = make_problem(110, 30, 2, 103);
  const Vector<double> prior = p.nngp_test.diagonal();
  const gp::Noise noise = gp::RelativeRegulariser(1e-3);
  for (const Index side : {13, 40, 200})
    for (const Index block : {8, 32}) {
      CAPTURE(side);
      CAPTURE(block);
      const EachTile tiles = [&](const TileBody& body) {
        for (Index row = 0; row < 110; row += side)
          for (Index column = row; column < 110; column += side)
            body(row, column,
                 p.ntk.block(row, column, std::min(side, 110 - row), std::min(side, 110 - column)));
      };
      const DistributedRegression found(grid, tiles, p.targets, noise, block);
      const gp::ConvergedFlow expected = gp::ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise);
      CHECK(relative_difference(found.mean(p.ntk_cross), expected.mean(p.ntk_cross)) < 1e-8);
      const Vector<double> variance =
          found.flow_variance(gp::MatrixOperator<double>(p.nngp), p.nngp_cross, p.ntk_cross, prior);
      CHECK(relative_difference(
                variance, found.amplitude() * expected.variance(p.nngp_cross, p.ntk_cross, prior)) < 1e-8);
    }
  const DistributedRegression found(grid, tiles_of(p.ntk), p.targets, noise, 32);
  const double amplitude = gp::ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise).leave_one_out_amplitude();
  CHECK(found.flow_leave_one_out(gp::MatrixOperator<double>(p.nngp), gp::all_inputs(p.nngp.rows()))
            .most_likely_scale("test") == doctest::Approx(amplitude).epsilon(1e-8));
  const EachTile hole = [](const TileBody& body) { body(0, 0, Matrix<double>::Constant(110, 110, NAN)); };
  CHECK_THROWS_AS(DistributedRegression(grid, hole, p.targets, noise, 8), NumericalError);
}

TEST_CASE("distributed: what fails on one rank is an error on all") {
  const ProcessGrid grid(MPI_COMM_WORLD);
  const KernelProblem p = make_problem(40, 5, 2, 102);
  const gp::Noise noise = gp::RelativeRegulariser(1e-3);
  Matrix<double> hole = p.nngp;
  hole(33, 12) = NAN;
  CHECK_THROWS_AS(DistributedRegression(grid, tiles_of(hole), p.targets, noise, 8), NumericalError);
  const Tile throws_once = [&](Index row, Index rows, Index column, Index columns) -> Matrix<double> {
    if (row == 16 && column == 8) throw std::runtime_error("the tile is damaged");
    return p.nngp.block(row, column, rows, columns);
  };
  CHECK_THROWS_WITH_AS(DistributedRegression(grid, throws_once, p.targets, noise, 8),
                       doctest::Contains("the tile is damaged"), NumericalError);
  Matrix<double> indefinite = p.nngp;
  indefinite.diagonal().array() -= 0.5;
  CHECK_THROWS_AS(DistributedRegression(grid, tiles_of(indefinite), p.targets, noise, 8),
                  gp::NotPositiveDefinite);
  CHECK_THROWS_AS(DistributedRegression(grid, tiles_of(p.nngp), p.targets, noise, 0), ArgumentError);
  const DistributedRegression fitted(grid, tiles_of(p.nngp), p.targets, noise, 8);
  const Matrix<double> narrow = p.nngp_cross.leftCols(39);
  CHECK_THROWS_WITH_AS(
      (void)fitted.mean(narrow),
      doctest::Contains("the cross Gram matrix must be [any number of rows, 40], got [5, 39]"),
      NumericalError);
  const gp::CrossGram breaks(
      5, 40, [](Index, Index) -> Matrix<double> { throw std::runtime_error("the rows are damaged"); });
  CHECK_THROWS_WITH_AS((void)fitted.variance(breaks, Vector<double>::Ones(5)),
                       doctest::Contains("the rows are damaged"), NumericalError);
}

TEST_CASE("distributed: parts that 32-bit indices cannot count are refused, with the ranks that would do") {
  CHECK_NOTHROW(require_local_parts(46'340, 46'340, 1, 256));
  CHECK_NOTHROW(require_local_parts(60'000, 60'000, 2, 256));
  CHECK_THROWS_WITH_AS(require_local_parts(60'000, 60'000, 1, 256),
                       "distributed: of a 60000 x 60000 matrix on 1 ranks, one would hold more than 46340 "
                       "squared entries, which the "
                       "32-bit indices of ScaLAPACK cannot count; 2 ranks would do",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(require_local_parts(200'000, 200'000, 16, 256),
                       doctest::Contains("; 20 ranks would do"), ArgumentError);
}

TEST_CASE("distributed: grids are as square as the ranks allow") {
  const auto is = [](int ranks, int rows, int columns) {
    const GridShape shape = GridShape::of(ranks);
    return shape.rows == rows && shape.columns == columns;
  };
  CHECK(is(1, 1, 1));
  CHECK(is(6, 2, 3));
  CHECK(is(7, 1, 7));
  CHECK(is(16, 4, 4));
  CHECK_THROWS_AS((void)GridShape::of(0), ArgumentError);
}
