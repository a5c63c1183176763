#include "widelimit/gp/converged_flow.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("converged flow: the numbers of GradientFlow at infinite time") {
  const KernelProblem p = make_problem(90, 30, 3, 91);
  for (const double regulariser : {1e-3, 0.3}) {
    const Noise noise = RelativeRegulariser(regulariser);
    const GradientFlow expected = GradientFlow::fit(p.nngp, p.ntk, p.targets, noise).with_amplitude(2.5);
    const ConvergedFlow flow = ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise).with_amplitude(2.5);
    const Vector<double> prior = p.nngp_test.diagonal();
    CHECK(relative_difference(flow.weights(), expected.weights(infinite_time)) < 1e-10);
    CHECK(relative_difference(flow.mean(p.ntk_cross), expected.mean(infinite_time, p.ntk_cross)) < 1e-10);
    CHECK(relative_difference(flow.variance(p.nngp_cross, p.ntk_cross, prior),
                              expected.variance(infinite_time, p.nngp_cross, p.ntk_cross, prior)) < 1e-10);
    CHECK(relative_difference(flow.leave_one_out().residuals, expected.leave_one_out().residuals) < 1e-10);
    CHECK(relative_difference(flow.leave_one_out().variances, expected.leave_one_out().variances) < 1e-10);
    CHECK(flow.leave_one_out_amplitude() ==
          doctest::Approx(expected.leave_one_out_amplitude()).epsilon(1e-10));
    CHECK(flow.amplitude() == 2.5);
    CHECK(flow.regulariser_variance() == doctest::Approx(expected.regulariser_variance()).epsilon(1e-14));
  }
}

TEST_CASE("converged flow: a factor gives the numbers of the inverse") {
  const KernelProblem p = make_problem(90, 30, 3, 93);
  const Noise noise = RelativeRegulariser(1e-2);
  const ConvergedFlow inverse = ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise);
  const ConvergedFlow factor =
      ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise, 0, ConvergedFlow::Holds::factor);
  const Vector<double> prior = p.nngp_test.diagonal();
  CHECK(factor.weights() == inverse.weights());
  CHECK(factor.mean(p.ntk_cross) == inverse.mean(p.ntk_cross));
  CHECK(relative_difference(factor.variance(p.nngp_cross, p.ntk_cross, prior),
                            inverse.variance(p.nngp_cross, p.ntk_cross, prior)) < 1e-10);
  CHECK(relative_difference(factor.leave_one_out().residuals, inverse.leave_one_out().residuals) < 1e-10);
  CHECK(factor.leave_one_out_amplitude() ==
        doctest::Approx(inverse.leave_one_out_amplitude()).epsilon(1e-10));
}

TEST_CASE("converged flow: arguments that do not fit, NaN and matrices that are not positive definite") {
  const KernelProblem p = make_problem(12, 5, 2, 92);
  const Noise noise = RelativeRegulariser(1e-3);
  const ConvergedFlow flow = ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise);
  CHECK_THROWS_AS((void)flow.mean(p.ntk_cross.leftCols(11)), ArgumentError);
  CHECK_THROWS_AS((void)flow.variance(p.nngp_cross.topRows(4), p.ntk_cross, p.nngp_test.diagonal()),
                  ArgumentError);
  CHECK_THROWS_AS((void)flow.with_amplitude(0), ArgumentError);
  Matrix<double> hole = p.ntk;
  hole(7, 5) = NAN;
  CHECK_THROWS_WITH_AS((void)ConvergedFlow::fit(p.nngp, hole, p.targets, noise),
                       "ConvergedFlow::fit: the NTK must be finite, but entry (7, 5) (indices from 0) is nan",
                       ArgumentError);
  Matrix<double> indefinite = p.ntk;
  indefinite.diagonal().array() -= 1;
  CHECK_THROWS_AS((void)ConvergedFlow::fit(p.nngp, indefinite, p.targets, noise), NotPositiveDefinite);
}
