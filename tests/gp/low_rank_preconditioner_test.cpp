// What columns tell of a matrix, and the root of the inverse of that, against dense matrices.
#include "gp/solvers/low_rank_preconditioner.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

#include "gp/problem.hpp"

namespace widelimit::gp_test::low_rank_preconditioner_test {
namespace {

using namespace widelimit::gp;
using doctest::Approx;

Matrix<double> dense(const LowRankKernel& kernel) {
  const auto n = kernel.vectors.rows();
  return kernel.vectors * kernel.values.asDiagonal() * kernel.vectors.transpose() +
         kernel.remainder * Matrix<double>::Identity(n, n);
}

/// 0 for a matrix without entries, of which Eigen has no largest one.
double largest_entry(const Matrix<double>& matrix) {
  return matrix.size() == 0 ? 0 : matrix.cwiseAbs().maxCoeff();
}

TEST_CASE("low rank: all columns, or as many as the rank, give the matrix itself") {
  const Matrix<double> factor = random_matrix(60, 7, 3), low = factor * factor.transpose();
  for (const Index columns : {7, 20, 60}) {
    CAPTURE(columns);
    const LowRankKernel found = LowRankKernel::of(MatrixOperator<double>(low), columns);
    CHECK(found.values.size() == 7);
    CHECK(found.remainder < 1e-10 * low.diagonal().mean());
    CHECK(relative_difference(dense(found), low) < 1e-9);
  }
}

TEST_CASE("low rank: what columns leave is positive semidefinite, and its mean diagonal the remainder") {
  const KernelProblem p = make_problem(120, 1, 1, 31);
  const MatrixOperator<double> gram(p.ntk);
  double before = p.ntk.diagonal().mean();
  for (const Index columns : {0, 5, 20, 60}) {
    CAPTURE(columns);
    const LowRankKernel found = LowRankKernel::of(gram, columns);
    const auto rank = found.values.size();
    CHECK(rank <= columns);
    CHECK(largest_entry(found.vectors.transpose() * found.vectors - Matrix<double>::Identity(rank, rank)) <
          1e-7);
    const Matrix<double> left =
        p.ntk - Matrix<double>(found.vectors * found.values.asDiagonal() * found.vectors.transpose());
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen{Eigen::MatrixXd(left)};
    CHECK(eigen.eigenvalues()(0) > -1e-6);
    CHECK(found.remainder == Approx(left.diagonal().mean()).epsilon(1e-6).scale(1e-6));
    // More columns leave less.
    CHECK(found.remainder <= before);
    before = found.remainder;
  }
}

TEST_CASE(
    "preconditioner: its square is the inverse of the low-rank matrix up to one factor, and undo undoes it") {
  const KernelProblem p = make_problem(80, 1, 3, 37);
  for (const Index columns : {0, 15}) {
    const LowRankKernel kernel = LowRankKernel::of(MatrixOperator<double>(p.ntk), columns);
    for (const double lambda : {1e-4, 0.3, 50.0}) {
      CAPTURE(columns);
      CAPTURE(lambda);
      const LowRankPreconditioner preconditioner(kernel, lambda);
      const Matrix<double> identity = Matrix<double>::Identity(80, 80), root = preconditioner.apply(identity);
      CHECK(largest_entry(root - root.transpose()) < 1e-12);
      CHECK(relative_difference(preconditioner.undo(preconditioner.apply(p.targets)), p.targets) < 1e-6);
      const Matrix<double> product = root * (dense(kernel) + lambda * identity) * root;
      CHECK(relative_difference(product, (kernel.remainder + lambda) * identity) < 1e-6);
    }
  }
}

TEST_CASE("preconditioner: it brings the eigenvalues of K + lambda I together") {
  const KernelProblem p = make_problem(150, 1, 1, 41);
  constexpr double lambda = 1e-2;
  const Matrix<double> shifted = p.ntk + lambda * Matrix<double>::Identity(150, 150);
  const auto condition = [&](Index columns) {
    const LowRankKernel kernel = LowRankKernel::of(MatrixOperator<double>(p.ntk), columns);
    const LowRankPreconditioner preconditioner(kernel, lambda);
    const Matrix<double> half = preconditioner.apply(shifted);
    const Eigen::MatrixXd both = preconditioner.apply(half.transpose());
    const Eigen::VectorXd values =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(0.5 * (both + both.transpose())).eigenvalues();
    return values(149) / values(0);
  };
  const double plain = condition(0), few = condition(20), many = condition(100);
  CHECK(few < plain / 2);
  CHECK(many < few);
}

}  // namespace
}  // namespace widelimit::gp_test::low_rank_preconditioner_test
