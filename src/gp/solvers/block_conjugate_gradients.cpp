#include "gp/solvers/block_conjugate_gradients.hpp"

#include <lapacke.h>

#include <Eigen/Cholesky>
#include <utility>
#include <vector>

#include "gp/solvers/linear_algebra.hpp"

namespace widelimit::gp {
namespace {

/// Q of block = Q R [rows, columns], rows >= columns, with orthonormal columns whatever the rank; R is written to `r`.
Matrix<double> orthonormal(Matrix<double> block, Matrix<double>& r) {
  const auto rows = static_cast<lapack_int>(block.rows()), columns = static_cast<lapack_int>(block.cols());
  Matrix<double> transposed = block.transpose();  // Column-major, for LAPACK.
  std::vector<double> tau(static_cast<std::size_t>(columns)), work(static_cast<std::size_t>(64 * columns));
  const auto size = static_cast<lapack_int>(work.size());
  LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, rows, columns, transposed.data(), rows, tau.data(), work.data(),
                      size);
  r = transposed.leftCols(columns).transpose().triangularView<Eigen::Upper>();
  LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, rows, columns, columns, transposed.data(), rows, tau.data(),
                      work.data(), size);
  return transposed.transpose();
}

}  // namespace

/// Block conjugate gradients that orthonormalise the residual block in every step (BCGrQ; Dubrulle, ETNA 12, 2001):
/// they do not break down where the residuals of several columns become dependent.
BlockConjugateGradients::BlockConjugateGradients(const LowRankKernel& kernel, double lambda,
                                                 const Matrix<double>& b)
    : preconditioner_{kernel, lambda},
      lambda_{lambda},
      residual_basis_{orthonormal(preconditioner_.apply(b), residual_factor_)},
      search_{residual_basis_},
      preconditioned_search_{preconditioner_.apply(search_)},
      solution_{Matrix<double>::Zero(b.rows(), b.cols())} {}

bool BlockConjugateGradients::advance(const Matrix<double>& product) {
  const Matrix<double> image = preconditioner_.apply(product + lambda_ * preconditioned_search_);
  Matrix<double> curvature = multiply(search_, Transpose::yes, image, Transpose::no);
  // Rounding leaves the curvature a little asymmetric.
  curvature = 0.5 * (curvature + curvature.transpose()).eval();
  const Eigen::LLT<Matrix<double>> factor(curvature);
  if (factor.info() != Eigen::Success) return false;
  // With the residual Q R and the search directions P, the solution moves by P (P^T A P)^-1 R.
  const Matrix<double> step = factor.solve(Matrix<double>::Identity(curvature.rows(), curvature.cols()));
  solution_ += multiply(search_, Transpose::no, step * residual_factor_, Transpose::no);
  Matrix<double> change;
  residual_basis_ =
      orthonormal(residual_basis_ - multiply(image, Transpose::no, step, Transpose::no), change);
  // The residual is Q' change R, and the new directions are Q' + P change^T.
  residual_factor_ = (change * residual_factor_).eval();
  search_ = residual_basis_ + multiply(search_, Transpose::no, change, Transpose::yes);
  preconditioned_search_ = preconditioner_.apply(search_);
  return true;
}

Vector<double> BlockConjugateGradients::residual_norms() const {
  return preconditioner_.undo(multiply(residual_basis_, Transpose::no, residual_factor_, Transpose::no))
      .colwise()
      .norm()
      .transpose();
}

}  // namespace widelimit::gp
