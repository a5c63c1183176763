#include "gp/solvers/band_form.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "gp/problem.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

struct Shape {
  Eigen::Index n, bandwidth;
};

// One block, whole blocks, a last block of 1, 2 or more rows, a tridiagonal matrix.
constexpr Shape shapes[] = {{1, 8}, {2, 1}, {7, 8}, {24, 8}, {25, 8}, {26, 8}, {31, 8}, {40, 1}, {61, 60}};

Vector<double> eigenvalues_of(const Matrix<double>& k) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(k).eigenvalues();
}

}  // namespace

TEST_CASE("band form: Q B Q^T is the matrix, Q is orthogonal and B has the band") {
  for (const auto [n, bandwidth] : shapes) {
    CAPTURE(n);
    CAPTURE(bandwidth);
    const Matrix<double> k = make_problem(n, 1, 1, 71).ntk, one = Matrix<double>::Identity(n, n);
    Matrix<double> upper = k;
    upper.triangularView<Eigen::StrictlyLower>().setConstant(NAN);  // What is not read.
    const BandForm form(std::move(upper), bandwidth);
    const Matrix<double> band = form.multiply_band(one), basis = form.to_band(one);
    const double bound = 1e-14 * static_cast<double>(n) * k.trace();
    CHECK((basis.transpose() * band * basis - k).cwiseAbs().maxCoeff() < bound);
    CHECK((basis * basis.transpose() - one).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((form.from_band(basis) - one).cwiseAbs().maxCoeff() < 1e-13);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j < n; ++j)
        if (std::abs(i - j) > bandwidth) CHECK(band(i, j) == 0);
    CHECK((BandForm(form).take_basis() - basis).cwiseAbs().maxCoeff() < 1e-13);
  }
}

TEST_CASE("band form: a Cholesky factor of the band solves and has the determinant") {
  for (const auto [n, bandwidth] : shapes) {
    CAPTURE(n);
    CAPTURE(bandwidth);
    const Matrix<double> k = make_problem(n, 1, 1, 72).nngp, x = random_matrix(n, 3, 73);
    const BandForm form(k, bandwidth);
    const auto factor = BandCholesky::of(form, 0.25);
    REQUIRE(factor.has_value());
    Matrix<double> shifted = k;
    shifted.diagonal().array() += 0.25;
    const Eigen::LLT<Eigen::MatrixXd> expected(shifted);
    Matrix<double> y = form.to_band(x);
    factor->whiten(y);
    CHECK(y.squaredNorm() == doctest::Approx((x.transpose() * expected.solve(x)).trace()).epsilon(1e-11));
    factor->unwhiten(y);
    CHECK(relative_difference(form.from_band(y), expected.solve(x)) < 1e-11);
    const double log_determinant = 2 * expected.matrixL().toDenseMatrix().diagonal().array().log().sum();
    CHECK(factor->log_determinant() == doctest::Approx(log_determinant).epsilon(1e-11));
    CHECK_FALSE(BandCholesky::of(form, -1.01 * eigenvalues_of(k)(n - 1)).has_value());
  }
}

TEST_CASE("band form: the spectrum of definite, singular, indefinite and clustered matrices") {
  for (const double smallest : {1e-3, 0.0, -1e-7, -0.4}) {
    CAPTURE(smallest);
    constexpr Eigen::Index n = 130;
    const Matrix<double> basis = BandForm(make_problem(n, 1, 1, 74).nngp).take_basis();
    Vector<double> values(n);
    for (Eigen::Index i = 0; i < n; ++i) values(i) = smallest + 1e-3 * std::pow(1.07, i) - 1e-3;
    const Matrix<double> k = basis * values.asDiagonal() * basis.transpose();
    const Spectrum spectrum = BandForm(k, 16).spectrum();
    const double rounding = 10 * epsilon * k.norm();
    CHECK(std::abs(spectrum.smallest - smallest) < 1e-8 * std::abs(smallest) + rounding);
    CHECK(std::abs(spectrum.largest - values(n - 1)) < 1e-9 * values(n - 1));
    CHECK(spectrum.frobenius_norm == doctest::Approx(k.norm()).epsilon(1e-13));
    CHECK(spectrum.size == n);
  }
  const Spectrum one = BandForm(Matrix<double>::Identity(50, 50), 8).spectrum();
  CHECK(one.smallest == doctest::Approx(1).epsilon(1e-14));
  CHECK(one.largest == doctest::Approx(1).epsilon(1e-14));
}
