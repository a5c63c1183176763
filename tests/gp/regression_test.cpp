#include "widelimit/gp/regression.hpp"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <cmath>
#include <limits>
#include <numbers>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Extended = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

// Log density of independent columns under N(mean, covariance), by LU in extended precision.
double log_density(const Matrix<double>& y, const Matrix<double>& mean, const Matrix<double>& covariance) {
  const Eigen::FullPivLU<Extended> lu(covariance.cast<long double>());
  const Extended r = (y - mean).cast<long double>();
  const long double log_determinant = lu.matrixLU().diagonal().array().abs().log().sum();
  const long double n = static_cast<long double>(y.rows()), outputs = static_cast<long double>(y.cols());
  return static_cast<double>(
      -0.5L * (r.cwiseProduct(lu.solve(r)).sum() +
               outputs * (log_determinant + n * std::log(2 * std::numbers::pi_v<long double>))));
}

}  // namespace

TEST_CASE("regression: one training point by hand") {
  const double k = 2, cross = 1.5, prior = 3, y = 0.7, lambda = 0.5;
  const Matrix<double> c = Matrix<double>::Constant(1, 1, cross);
  const Regression fit = Regression::fit(Matrix<double>::Constant(1, 1, k), Matrix<double>::Constant(1, 1, y),
                                         AbsoluteNoise(lambda));
  CHECK(fit.mean(c)(0, 0) == Approx(cross * y / (k + lambda)).epsilon(1e-15).scale(0));
  CHECK(fit.variance(c, Vector<double>::Constant(1, prior))(0) ==
        Approx(prior - cross * cross / (k + lambda)).epsilon(1e-15).scale(0));
  CHECK(fit.log_marginal_likelihood() ==
        Approx(-0.5 * (y * y / (k + lambda) + std::log(k + lambda) + std::log(2 * std::numbers::pi)))
            .epsilon(1e-15)
            .scale(0));
  CHECK(fit.noise_variance() == lambda);
}

TEST_CASE("regression: a relative regulariser is times the mean diagonal entry") {
  const Matrix<double> k = Vector<double>{{1.0, 5.0}}.asDiagonal();
  CHECK(Regression::fit(k, Matrix<double>::Ones(2, 1), RelativeRegulariser(0.1))
            .with_amplitude(1)
            .noise_variance() == Approx(0.3).epsilon(1e-15).scale(0));
}

TEST_CASE("regression: mean, variance and covariance agree with extended-precision LU") {
  // 520 test inputs: one more block than fits at once.
  const KernelProblem p = make_problem(40, 520, 3, 11);
  const double lambda = 1e-3;
  const Regression fit = Regression::fit(p.nngp, p.targets, AbsoluteNoise(lambda));
  Extended noisy = p.nngp.cast<long double>();
  noisy.diagonal().array() += lambda;
  const Eigen::FullPivLU<Extended> lu(noisy);
  const Extended cross = p.nngp_cross.cast<long double>();
  const Matrix<double> mean = (cross * lu.solve(Extended(p.targets.cast<long double>()))).cast<double>();
  const Matrix<double> covariance =
      (p.nngp_test.cast<long double>() - cross * lu.solve(Extended(cross.transpose()))).cast<double>();
  // Backward stable: condition number times n machine epsilon, the data being of order 1.
  const double bound = 40 * epsilon * p.nngp.trace() / lambda;
  CHECK(relative_difference(fit.mean(p.nngp_cross), mean) < bound);
  CHECK((fit.covariance(p.nngp_cross, p.nngp_test) - covariance).cwiseAbs().maxCoeff() < bound);
  const Vector<double> variance = fit.variance(p.nngp_cross, p.nngp_test.diagonal());
  CHECK((variance - covariance.diagonal()).cwiseAbs().maxCoeff() < bound);
  const Matrix<double> joint = fit.covariance(p.nngp_cross, p.nngp_test);
  CHECK(joint == joint.transpose());
  const Regression other =
      Regression::fit(p.nngp, p.targets, AbsoluteNoise(2 * lambda));  // a wrong noise shows
  CHECK(relative_difference(other.mean(p.nngp_cross), mean) > 1e3 * bound);
}

TEST_CASE(
    "regression: evidence, posterior mean and covariance obey the chain rule log p(y, y') = log p(y) + log "
    "p(y'|y)") {
  const KernelProblem p = make_problem(30, 0, 2, 12);
  const double lambda = 0.05;
  const Eigen::Index a = 18, b = 12;
  const Regression whole = Regression::fit(p.nngp, p.targets, AbsoluteNoise(lambda));
  const Regression part =
      Regression::fit(p.nngp.topLeftCorner(a, a), p.targets.topRows(a), AbsoluteNoise(lambda));
  Matrix<double> covariance = part.covariance(p.nngp.bottomLeftCorner(b, a), p.nngp.bottomRightCorner(b, b));
  covariance.diagonal().array() += lambda;
  const double rest =
      log_density(p.targets.bottomRows(b), part.mean(p.nngp.bottomLeftCorner(b, a)), covariance);
  CHECK(whole.log_marginal_likelihood() ==
        Approx(part.log_marginal_likelihood() + rest).epsilon(1e-11).scale(0));
}

TEST_CASE("regression: outputs are independent and their evidence adds up") {
  const KernelProblem p = make_problem(25, 6, 3, 13);
  const Regression together = Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.01)).with_amplitude(1);
  double evidence = 0;
  for (int c = 0; c < 3; ++c) {
    const Regression alone =
        Regression::fit(p.nngp, p.targets.col(c), RelativeRegulariser(0.01)).with_amplitude(1);
    evidence += alone.log_marginal_likelihood();
    CHECK(relative_difference(alone.mean(p.nngp_cross), together.mean(p.nngp_cross).col(c)) < 1e-11);
  }
  CHECK(together.log_marginal_likelihood() == Approx(evidence).epsilon(1e-13).scale(0));
}

TEST_CASE("regression: the amplitude makes the targets most likely and scales variances alone") {
  const KernelProblem p = make_problem(25, 6, 3, 18);
  const Matrix<double> y = 0.02 * p.targets, none = Matrix<double>::Zero(25, 3);
  const double eps = 0.02;
  const Regression fit = Regression::fit(p.nngp, y, RelativeRegulariser(eps));
  const Regression plain = fit.with_amplitude(1);
  Matrix<double> noisy = p.nngp;
  noisy.diagonal().array() += eps * p.nngp.diagonal().mean();
  const double a = fit.amplitude();
  CHECK(a < 1e-2);
  // The stationary point of an independently computed density, and a maximum.
  const auto density = [&](double amplitude) { return log_density(y, none, amplitude * noisy); };
  const double h = 1e-3, low = density(a * (1 - h)), high = density(a * (1 + h)), at = density(a);
  CHECK(std::abs(high - low) < 1e-2 * (2 * at - low - high));
  CHECK(2 * at - low - high ==
        Approx(75.0 / 2 * h * h).epsilon(1e-2).scale(0));  // n outputs / 2 relative to a
  CHECK(fit.log_marginal_likelihood() == Approx(at).epsilon(1e-12).scale(0));
  CHECK(plain.log_marginal_likelihood() == Approx(density(1)).epsilon(1e-12).scale(0));

  const Vector<double> prior = p.nngp_test.diagonal();
  CHECK(fit.mean(p.nngp_cross) == plain.mean(p.nngp_cross));
  CHECK(relative_difference(fit.variance(p.nngp_cross, prior), a * plain.variance(p.nngp_cross, prior)) <
        1e-14);
  CHECK(relative_difference(fit.covariance(p.nngp_cross, p.nngp_test),
                            a * plain.covariance(p.nngp_cross, p.nngp_test)) < 1e-14);
  CHECK(fit.noise_variance() == Approx(a * plain.noise_variance()).epsilon(1e-14).scale(0));
  // Kernel and targets of any scale come to the same.
  const Regression scaled = Regression::fit(7 * p.nngp, y, RelativeRegulariser(eps));
  CHECK(relative_difference(scaled.variance(7 * p.nngp_cross, 7 * prior), fit.variance(p.nngp_cross, prior)) <
        1e-10);
  CHECK(Regression::fit(p.nngp, 3 * y, RelativeRegulariser(eps)).amplitude() ==
        Approx(9 * a).epsilon(1e-12).scale(0));
}

TEST_CASE("regression: amplitudes that are not fitted") {
  const KernelProblem p = make_problem(12, 2, 2, 19);
  CHECK(Regression::fit(p.nngp, p.targets, AbsoluteNoise(0.1)).amplitude() == 1);
  const Regression zero = Regression::fit(p.nngp, 0 * p.targets, RelativeRegulariser(0.1));
  CHECK(zero.amplitude() == 0);
  CHECK(zero.mean(p.nngp_cross).isZero(0));
  // No density is finite under an amplitude of 0, and nothing says that predictions are certain.
  const char* const message =
      "the targets are all 0, so that no amplitude fits them; with_amplitude() gives one";
  CHECK_THROWS_WITH_AS((void)zero.log_marginal_likelihood(), doctest::Contains(message), NumericalError);
  CHECK_THROWS_WITH_AS((void)zero.leave_one_out(), doctest::Contains(message), NumericalError);
  CHECK_THROWS_WITH_AS((void)zero.variance(p.nngp_cross, p.nngp_test.diagonal()), doctest::Contains(message),
                       NumericalError);
  CHECK_THROWS_WITH_AS((void)zero.covariance(p.nngp_cross, p.nngp_test), doctest::Contains(message),
                       NumericalError);
  CHECK((zero.with_amplitude(2).variance(p.nngp_cross, p.nngp_test.diagonal()).array() > 0).all());
  CHECK(zero.with_amplitude(2).log_marginal_likelihood() < 100);
  for (const double bad : {0.0, -1.0, infinity, std::nan("")})
    CHECK_THROWS_AS((void)zero.with_amplitude(bad), ArgumentError);
  CHECK_THROWS_WITH_AS((void)zero.with_amplitude(-2),
                       "Regression::with_amplitude: the amplitude must be positive and finite, got -2",
                       ArgumentError);
}

TEST_CASE("regression: kernels of float are converted and solved in double") {
  const KernelProblem p = make_problem(30, 5, 2, 14);
  const Matrix<float> k = p.nngp.cast<float>(), cross = p.nngp_cross.cast<float>(),
                      test = p.nngp_test.cast<float>();
  const RelativeRegulariser eps(1e-5);  // hopeless in float
  const Regression single = Regression::fit(k, p.targets, eps);
  const Regression full = Regression::fit(Matrix<double>(k.cast<double>()), p.targets, eps);
  const Matrix<double> cross64 = cross.cast<double>();
  CHECK(single.mean(cross) == full.mean(cross64));
  CHECK(single.covariance(cross, test) == full.covariance(cross64, test.cast<double>()));
  CHECK(single.log_marginal_likelihood() == full.log_marginal_likelihood());
}

TEST_CASE("regression: an empty test set gives empty predictions, any number of threads the same numbers") {
  const KernelProblem p = make_problem(20, 4, 2, 15);
  const Regression one = Regression::fit(p.nngp, p.targets, AbsoluteNoise(0.1), 1);
  const Regression two = Regression::fit(p.nngp, p.targets, AbsoluteNoise(0.1), 2);
  CHECK(relative_difference(two.mean(p.nngp_cross), one.mean(p.nngp_cross)) < 1e-12);
  CHECK(one.mean(p.nngp_cross.topRows(0)).rows() == 0);
  CHECK(one.mean(p.nngp_cross.topRows(0)).cols() == 2);
  CHECK(one.variance(p.nngp_cross.topRows(0), Vector<double>(0)).size() == 0);
  CHECK(one.covariance(p.nngp_cross.topRows(0), Matrix<double>(0, 0)).size() == 0);
}

TEST_CASE("regression: variances that round below zero are zero, contradictory ones are an error") {
  const Matrix<double> k = Matrix<double>::Ones(1, 1), y = Matrix<double>::Ones(1, 1);
  const Regression fit = Regression::fit(k, y, AbsoluteNoise(1e-30));
  CHECK(fit.variance(Matrix<double>::Constant(1, 1, 1 + 4e-4), Vector<double>::Ones(1))(0) == 0);
  CHECK(fit.variance(Matrix<double>::Constant(1, 1, 0.5), Vector<double>::Ones(1))(0) == Approx(0.75));
  CHECK_THROWS_WITH_AS((void)fit.variance(Matrix<double>::Constant(1, 1, 2), Vector<double>::Ones(1)),
                       "Regression::variance: the variance of test input 0 comes out as -3, with prior "
                       "variance 1; check that the cross "
                       "Gram matrices and the test variances belong to the training kernel, and compute them "
                       "in double or regularise more",
                       NumericalError);
}

TEST_CASE(
    "regression: a matrix that is not positive definite names the minor, the eigenvalue and what is enough") {
  for (const Eigen::Index n : {4, 300}) {  // the second is factorized in blocks
    CAPTURE(n);
    Matrix<double> k = Matrix<double>::Identity(n, n);
    k(n - 2, n - 1) = k(n - 1, n - 2) = 1.5;  // eigenvalues 2.5 and -0.5; every smaller leading minor is 1
    const Matrix<double> y = Matrix<double>::Ones(n, 1);
    try {
      (void)Regression::fit(k, y, RelativeRegulariser(0.25));
      FAIL("no error");
    } catch (const NotPositiveDefinite& error) {
      CHECK(error.leading_minor() == n);
      CHECK(error.smallest_eigenvalue() == Approx(-0.5).epsilon(1e-12).scale(0));
      CHECK(error.sufficient_regulariser().value() == Approx(0.5).epsilon(1e-4).scale(0));
      CHECK(Regression::fit(k, y, RelativeRegulariser(error.sufficient_regulariser().value()))
                .weights()
                .allFinite());
    }
    CHECK_THROWS_AS((void)Regression::fit(k, y, RelativeRegulariser(0.4999)), NumericalError);
  }
  const Matrix<double> indefinite{{1.0, 1.5}, {1.5, 1.0}};
  CHECK_THROWS_WITH_AS(
      (void)Regression::fit(indefinite, Matrix<double>::Ones(2, 1), AbsoluteNoise(0.25)),
      "Regression::fit: the 2 x 2 Gram matrix plus noise variance 0.25 is not positive definite in "
      "double precision: the leading minor of order 2 is not positive; the smallest eigenvalue without "
      "noise is -0.5; a relative regulariser of 0.500005 (noise variance 0.500005) is enough",
      NotPositiveDefinite);
  const Matrix<double> hollow{{0.0, 1.0}, {1.0, 0.0}};
  CHECK_THROWS_WITH_AS(
      (void)Regression::fit(hollow, Matrix<double>::Ones(2, 1), AbsoluteNoise(0.25)),
      doctest::Contains("the smallest eigenvalue without noise is -1; its diagonal is zero, so it cannot "
                        "be a Gram matrix"),
      NotPositiveDefinite);
}

TEST_CASE("regression: matrices with a NaN, an infinity or an asymmetry are named with the first index") {
  const KernelProblem p = make_problem(150, 2, 1, 16);  // three tiles a side
  const auto fit = [&](const Matrix<double>& k) { return Regression::fit(k, p.targets, AbsoluteNoise(1)); };
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    Matrix<double> k = p.nngp;
    k(140, 3) = k(3, 140) = bad;
    k(149, 149) = bad;
    CHECK_THROWS_WITH_AS(
        (void)fit(k),
        doctest::Contains("the Gram matrix must be finite, but entry (3, 140) (indices from 0)"),
        ArgumentError);
    k = p.nngp;
    k(77, 77) = bad;
    CHECK_THROWS_WITH_AS((void)fit(k), doctest::Contains("entry (77, 77)"), ArgumentError);
  }
  Matrix<double> k = p.nngp;
  k(100, 2) += 1e-7;  // within the tolerance, 2e-6 here
  CHECK_NOTHROW((void)fit(k));
  k(100, 2) += 1e-3;
  k(140, 139) += 1e-3;
  CHECK_THROWS_WITH_AS((void)fit(k),
                       doctest::Contains("the Gram matrix must be symmetric, but entry (2, 100) is "),
                       ArgumentError);
}

TEST_CASE("regression: arguments that do not fit") {
  const KernelProblem p = make_problem(5, 3, 2, 17);
  const Regression fit = Regression::fit(p.nngp, p.targets, AbsoluteNoise(0.1));
  const AbsoluteNoise noise(0.1);
  CHECK_THROWS_WITH_AS((void)Regression::fit(p.nngp_cross, p.targets, noise),
                       "Regression::fit: the Gram matrix must be square with at least one row, got [3, 5]",
                       ArgumentError);
  CHECK_THROWS_AS((void)Regression::fit(Matrix<double>(0, 0), Matrix<double>(0, 1), noise), ArgumentError);
  CHECK_THROWS_WITH_AS((void)Regression::fit(p.nngp, p.targets.topRows(4), noise),
                       "Regression::fit: the targets must be [5, any], got [4, 2]", ArgumentError);
  CHECK_THROWS_WITH_AS((void)Regression::fit(p.nngp, Matrix<double>(5, 0), noise),
                       "Regression::fit: the targets must have at least one column", ArgumentError);
  Matrix<double> y = p.targets;
  y(2, 1) = std::nan("");
  CHECK_THROWS_WITH_AS(
      (void)Regression::fit(p.nngp, y, noise),
      "Regression::fit: the targets must be finite, but entry (2, 1) (indices from 0) is nan", ArgumentError);
  CHECK_THROWS_AS((void)Regression::fit(-p.nngp, p.targets, noise), ArgumentError);
  CHECK_THROWS_AS((void)Regression::fit(p.nngp, p.targets, noise, -2), ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit.mean(p.nngp_cross.leftCols(4)),
                       "Regression::mean: the cross Gram matrix must be [any, 5], got [3, 4]", ArgumentError);
  Matrix<double> cross = p.nngp_cross;
  cross(1, 4) = infinity;
  CHECK_THROWS_WITH_AS(
      (void)fit.mean(cross),
      "Regression::mean: the cross Gram matrix must be finite, but entry (1, 4) (indices from 0) is inf",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit.variance(p.nngp_cross, Vector<double>::Ones(2)),
                       "Regression::variance: expected the variances of 3 test inputs, got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)fit.variance(p.nngp_cross, Vector<double>{{1.0, -1.0, 1.0}}),
      "Regression::variance: the variance of test input 1 must be finite and not negative, got -1",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit.covariance(p.nngp_cross, p.nngp),
                       "Regression::covariance: the test Gram matrix must be [3, 3], got [5, 5]",
                       ArgumentError);
}
