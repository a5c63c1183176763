// The spectrum from a few products with a matrix, against all of its eigenvalues.
#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "gp/problem.hpp"
#include "gp/solvers/band_form.hpp"
#include "gp/solvers/spectrum.hpp"

namespace widelimit::gp_test::block_lanczos_test {
namespace {

using namespace widelimit::gp;
using doctest::Approx;

/// A symmetric matrix of these eigenvalues, in a random basis.
Matrix<double> with_eigenvalues(const Vector<double>& values, std::uint64_t seed) {
  const Eigen::MatrixXd random = random_matrix(values.size(), values.size(), seed);
  const Eigen::MatrixXd basis = Eigen::HouseholderQR<Eigen::MatrixXd>(random).householderQ();
  const Eigen::MatrixXd matrix = basis * values.asDiagonal() * basis.transpose();
  return 0.5 * (matrix + matrix.transpose());
}

Vector<double> all_eigenvalues(const Matrix<double>& matrix) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix, Eigen::EigenvaluesOnly).eigenvalues();
}

/// Counts the products.
Spectrum spectrum_counting(const Matrix<double>& matrix, int& products) {
  return spectrum_of(spectrum_probes(matrix.rows()), [&](const Matrix<double>& x) {
    ++products;
    CHECK(x.cols() <= 32);
    return Matrix<double>(matrix * x);
  });
}

TEST_CASE("spectrum: up to 384 inputs it is exact, of any sign and rank") {
  for (const Index n : {1, 2, 31, 33, 100, 384}) {
    CAPTURE(n);
    for (const double lowest : {0.1, -2.0, 0.0}) {
      Vector<double> values = Vector<double>::LinSpaced(n, lowest, 3.0);
      if (n > 40) values.head(20).setConstant(lowest);
      const Matrix<double> matrix = with_eigenvalues(values, 5);
      const Vector<double> expected = all_eigenvalues(matrix);
      int products = 0;
      const Spectrum found = spectrum_counting(matrix, products);
      const double allowed = 1e-12 * static_cast<double>(n);
      CHECK(found.size == n);
      CHECK(products <= 12);
      CHECK(found.smallest == Approx(expected(0)).epsilon(1e-5).scale(allowed / 1e-5));
      CHECK(std::abs(found.largest - expected(n - 1)) <= allowed);
      CHECK(found.frobenius_norm == Approx(matrix.norm()).epsilon(0.05));
    }
  }
}

TEST_CASE("spectrum: of many inputs the largest eigenvalue, and bounds that hold") {
  const Index n = 700;
  Vector<double> decaying(n);
  for (Index i = 0; i < n; ++i) decaying(i) = 100 / std::pow(1.0 + static_cast<double>(i), 1.5);
  for (const double negative : {0.0, -3.0}) {
    Vector<double> values = decaying;
    if (negative < 0) values(n - 1) = negative;
    const Matrix<double> matrix = with_eigenvalues(values, 7);
    int products = 0;
    const Spectrum found = spectrum_counting(matrix, products);
    CHECK(products <= 12);
    CHECK(found.largest == Approx(100).epsilon(1e-10));
    CHECK(found.frobenius_norm == Approx(matrix.norm()).epsilon(0.05));
    // An eigenvalue lies within the error of the Ritz value, which is none's lower bound.
    const Vector<double> all = all_eigenvalues(matrix);
    CHECK(found.smallest >= all(0) - 1e-10);
    CHECK((all.array() - found.smallest).abs().minCoeff() <= found.smallest_error + 1e-10);
    if (negative < 0) CHECK(found.smallest == Approx(negative).epsilon(1e-5));
    CHECK(found.smallest_known() <= std::max(0.0, found.smallest));
    CHECK((found.smallest_known() < 0) == (found.smallest < 0));
  }
}

TEST_CASE("spectrum: it scales with the matrix, and is that of the operator and of its band form") {
  const KernelProblem p = make_problem(90, 1, 1, 23);
  const MatrixOperator<double> gram(p.ntk);
  const Spectrum once = spectrum_of(gram);
  const Matrix<double> scaled = 1e6 * p.ntk;
  const Spectrum larger = spectrum_of(MatrixOperator<double>(scaled));
  CHECK(larger.largest == Approx(1e6 * once.largest).epsilon(1e-12));
  CHECK(larger.frobenius_norm == Approx(1e6 * once.frobenius_norm).epsilon(1e-9));
  Matrix<double> used = p.ntk;
  const Spectrum of_band = BandForm(std::move(used)).spectrum();
  CHECK(of_band.largest == Approx(once.largest).epsilon(1e-12));
  CHECK(of_band.smallest == Approx(once.smallest).epsilon(1e-6).scale(1e-7));
  CHECK(of_band.frobenius_norm == Approx(once.frobenius_norm).epsilon(1e-6));
}

TEST_CASE("spectrum: probes are signs, the same ones for every matrix of a size") {
  for (const Index n : {1, 20, 32, 500}) {
    const Matrix<double> probes = spectrum_probes(n);
    CHECK(probes.rows() == n);
    CHECK(probes.cols() == std::min<Index>(n, 32));
    CHECK((probes.array().abs() == 1).all());
    CHECK(probes == spectrum_probes(n));
  }
}

}  // namespace
}  // namespace widelimit::gp_test::block_lanczos_test
