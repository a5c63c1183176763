#include "gp/solvers/linear_algebra.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "gp/problem.hpp"
#include "gp/solvers/band_form.hpp"
#include "gp/solvers/rounding_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("linear algebra: products agree with Eigen's, transposed, of blocks and empty") {
  const Matrix<double> a = random_matrix(5, 7, 1), b = random_matrix(7, 4, 2);
  const double bound = 7 * 10 * epsilon;  // sums of 7 products of normals
  const Matrix<double> at = a.transpose(), bt = b.transpose();
  const Matrix<double> expected = a.lazyProduct(b);
  CHECK((multiply(a, Transpose::no, b, Transpose::no) - expected).cwiseAbs().maxCoeff() < bound);
  CHECK((multiply(at, Transpose::yes, b, Transpose::no) - expected).cwiseAbs().maxCoeff() < bound);
  CHECK((multiply(a, Transpose::no, bt, Transpose::yes) - expected).cwiseAbs().maxCoeff() < bound);
  CHECK((multiply(at, Transpose::yes, bt, Transpose::yes) - expected).cwiseAbs().maxCoeff() < bound);
  const Matrix<double> block = a.block(1, 2, 3, 4).lazyProduct(b.topRows(4));
  CHECK((multiply(a.block(1, 2, 3, 4), Transpose::no, b.topRows(4), Transpose::no) - block)
            .cwiseAbs()
            .maxCoeff() < bound);
  CHECK(multiply(a.topRows(0), Transpose::no, b, Transpose::no).rows() == 0);
}

TEST_CASE("linear algebra: a scaled Gram update is exactly symmetric") {
  const Matrix<double> a = random_matrix(130, 7, 3);  // more than two tiles of the mirror
  Matrix<double> c = Matrix<double>::Identity(130, 130);
  const Matrix<double> expected = c - 2 * a.lazyProduct(a.transpose());
  add_scaled_gram(c, -2, a);
  CHECK((c - expected).cwiseAbs().maxCoeff() < 7 * 40 * epsilon);
  CHECK(c == c.transpose());
}

TEST_CASE("linear algebra: quadratic forms agree with Eigen's and read the upper triangle alone") {
  Matrix<double> k = make_problem(60, 1, 1, 4).ntk;
  const Matrix<double> x = random_matrix(60, 7, 5);
  const Vector<double> expected = (x.transpose() * k * x).diagonal();
  k.triangularView<Eigen::StrictlyLower>().setConstant(NAN);
  CHECK((quadratic_forms(k, x) - expected).cwiseAbs().maxCoeff() < 1e-12 * expected.cwiseAbs().maxCoeff());
  CHECK(quadratic_forms(k, x.leftCols(0)).size() == 0);
}

TEST_CASE("linear algebra: both eigensolvers give ascending eigenvalues and orthonormal rows") {
  const Matrix<double> k = make_problem(60, 1, 1, 4).ntk;
  for (const auto solver :
       {EigenSolver::by_size, EigenSolver::divide_and_conquer, EigenSolver::robust_representations}) {
    const SymmetricEigen eigen = symmetric_eigen(k, "test", solver);
    const double bound = 60 * epsilon * k.trace();
    const Matrix<double> back = eigen.vectors.transpose() * eigen.values.asDiagonal() * eigen.vectors;
    CHECK((back - k).cwiseAbs().maxCoeff() < bound);
    CHECK(
        (eigen.vectors * eigen.vectors.transpose() - Matrix<double>::Identity(60, 60)).cwiseAbs().maxCoeff() <
        60 * epsilon);
    for (int i = 1; i < 60; ++i) CHECK(eigen.values(i - 1) <= eigen.values(i));
  }
}

TEST_CASE(
    "linear algebra: the sufficient regulariser is sufficient, for indefinite and for singular matrices") {
  for (const int n : {1, 2, 10, 150}) {
    for (const double deficit : {0.0, 1e-9, 0.3, 5.0}) {
      CAPTURE(n);
      CAPTURE(deficit);
      // Rank one, shifted: smallest eigenvalue -deficit (n > 1), and a very uneven diagonal.
      Vector<double> v = random_matrix(n, 1, 5);
      v(0) = 1e3;
      Matrix<double> k = v * v.transpose();
      k.diagonal().array() -= deficit;
      const double mean = k.diagonal().mean();
      const double smallest = n == 1 ? k(0, 0) : -deficit;
      const auto enough = sufficient_regulariser(smallest, n, mean);
      REQUIRE(enough.has_value());
      CHECK(Cholesky(k, *enough * mean, "test").size() == n);
      if (n > 1 && deficit > 1e-6)
        CHECK_THROWS_AS(Cholesky(k, deficit * (1 - 1e-3), "test"), NotPositiveDefinite);
    }
  }
  CHECK_FALSE(sufficient_regulariser(-1, 3, 0).has_value());
}

TEST_CASE(
    "linear algebra: the error of a rounded Gram matrix is at least that of its entries, and not far off") {
  for (const int n : {20, 200, 400}) {
    CAPTURE(n);
    const Matrix<double> x = random_matrix(n, 3, 6);
    const Matrix<double> k = (x * x.transpose()).array() + 2;
    const Matrix<double> rounded = k.cast<float>().cast<double>();
    const double norm = symmetric_eigen(rounded - k, "test").values.cwiseAbs().maxCoeff();
    const Spectrum spectrum = BandForm(rounded).spectrum();
    const double error = gram_error(spectrum, std::numeric_limits<float>::epsilon());
    CHECK(error >= norm);
    CHECK(error < 5 * norm);
    // Without knowing where the numbers come from, the negative eigenvalues tell.
    CHECK(gram_error(spectrum, epsilon) > norm / 4);
    CHECK(gram_error(BandForm(k).spectrum(), epsilon) < 1e-4 * norm);
  }
}
