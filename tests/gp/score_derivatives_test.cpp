// Derivatives of evidence and leave-one-out by numbers that the Gram matrix depends on, against differences of refits.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "gp/problem.hpp"
#include "numerics/central_slope.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

/// A Gram matrix that depends on t.
struct Curve {
  Matrix<double> inputs = random_matrix(12, 3, 1);
  Matrix<double> targets = random_matrix(12, 2, 2);

  [[nodiscard]] Matrix<double> at(double t) const {
    return squared_exponential(inputs, inputs, 1.1 + t) * (1 + 3 * t);
  }
  [[nodiscard]] Matrix<double> derivative() const {
    Matrix<double> slope(12, 12);
    for (Eigen::Index i = 0; i < 12; ++i)
      for (Eigen::Index j = 0; j < 12; ++j)
        slope(i, j) = numerics::central_slope([&](double t) { return at(t)(i, j); }, 1e-3);
    return slope;
  }
};

void check(const Noise& noise, const std::function<Regression(Regression)>& changed) {
  const Curve curve;
  const auto fitted = [&](double t) { return changed(Regression::fit(curve.at(t), curve.targets, noise)); };
  const std::vector<Matrix<double>> derivatives{curve.derivative(), 2 * curve.derivative()};
  const auto got = fitted(0).score_derivatives(derivatives);
  REQUIRE(got.size() == 2);
  const double evidence = numerics::central_slope(
                   [&](double t) { return fitted(t).log_marginal_likelihood(); }, 1e-3),
               density = numerics::central_slope(
                   [&](double t) { return fitted(t).leave_one_out().negative_log_predictive_density(); },
                   1e-3);
  CHECK(std::abs(evidence) > 1);
  CHECK(got[0].log_marginal_likelihood == Approx(evidence).epsilon(1e-8));
  CHECK(got[0].leave_one_out_density == Approx(density).epsilon(1e-8));
  CHECK(got[1].log_marginal_likelihood == Approx(2 * evidence).epsilon(1e-8));
  CHECK(got[1].leave_one_out_density == Approx(2 * density).epsilon(1e-8));
}

}  // namespace

TEST_CASE("score derivatives: noise and amplitude follow the Gram matrix, or not") {
  const auto as_fitted = [](Regression regression) { return regression; };
  check(RelativeRegulariser(0.1), as_fitted);
  check(AbsoluteNoise(0.2), as_fitted);
  check(RelativeRegulariser(0.1),
        [](const Regression& regression) { return regression.with_amplitude(0.7); });
}

TEST_CASE("score derivatives: errors") {
  const Curve curve;
  const Regression fitted = Regression::fit(curve.at(0), curve.targets, AbsoluteNoise(0.2));
  const std::vector<Matrix<double>> small{Matrix<double>::Zero(3, 3)};
  CHECK_THROWS_WITH_AS(static_cast<void>(fitted.score_derivatives(small)),
                       doctest::Contains("a derivative of the Gram matrix"), ArgumentError);
  Matrix<double> asymmetric = curve.derivative();
  asymmetric(0, 1) += 0.1;
  const std::vector<Matrix<double>> wrong{asymmetric};
  CHECK_THROWS_WITH_AS(static_cast<void>(fitted.score_derivatives(wrong)),
                       doctest::Contains("must be symmetric"), ArgumentError);
  const std::vector<Matrix<double>> derivatives{curve.derivative()};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(Regression::from_parts(fitted.parts()).score_derivatives(derivatives)),
      doctest::Contains("made of parts"), ArgumentError);
  const Regression silent =
      Regression::fit(curve.at(0), Matrix<double>::Zero(12, 1), RelativeRegulariser(0.1));
  CHECK_THROWS_WITH_AS(static_cast<void>(silent.score_derivatives(derivatives)),
                       doctest::Contains("the targets are all 0"), NumericalError);
}
