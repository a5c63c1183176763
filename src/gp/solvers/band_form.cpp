#include "gp/solvers/band_form.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>

namespace widelimit::gp {
namespace {

using Eigen::Index;

blasint band_int(Index n) { return static_cast<blasint>(n); }

/// Uninitialised: it is written before it is read.
Matrix<double> columns_of(Index rows, Index columns) { return Matrix<double>(columns, rows); }

/// The reflectors of a panel [rows, count] as a matrix of their own, with their unit diagonal, where LAPACK leaves R.
/// The result is column-major, like everything that LAPACK sees.
Matrix<double> explicit_reflectors(const double* panel, Index stride, Index rows, Index count) {
  Matrix<double> v = columns_of(rows, count);
  for (Index j = 0; j < count; ++j) {
    v.row(j).head(j).setZero();
    v(j, j) = 1;
    std::copy_n(panel + j * stride + j + 1, rows - j - 1, v.row(j).data() + j + 1);
  }
  return v;
}

}  // namespace

BandForm::BandForm(Matrix<double> symmetric, Index bandwidth)
    : size_{symmetric.rows()},
      reflectors_{std::move(symmetric)},
      bandwidth_{std::clamp<Index>(bandwidth, 1, size())} {
  const Index n = size();
  for (Index first = 0; first < n; first += bandwidth_) {
    const Index width = std::min(bandwidth_, n - first);
    diagonal_.emplace_back(reflectors_.block(first, first, width, width).selfadjointView<Eigen::Upper>());
    if (first + width < n) reduce_panel(first, width);
  }
}

// LAPACK's dsytrd_sy2sb in the calls that are fast on few cores: with P = Q R for the panel below the diagonal block
// and Q = I - V T V^T, the rest A becomes Q^T A Q = A - V W^T - W V^T for W = A V T - V (T^T V^T A V T) / 2.
void BandForm::reduce_panel(Index first, Index width) {
  const Index n = size(), rows = n - first - width, count = std::min(rows, width);
  double* const panel = reflectors_.data() + first * n + first + width;
  double* const rest = panel + width * n;
  const blasint m = band_int(rows), c = band_int(count), stride = band_int(n);
  Matrix<double>& t = factors_.emplace_back(count, count);
  t.setZero();
  Matrix<double> w = columns_of(rows, std::max(count, width)), s(count, count);
  LAPACKE_dgeqrt_work(LAPACK_COL_MAJOR, m, band_int(width), c, panel, stride, t.data(), c, w.data());
  Matrix<double>& r = below_.emplace_back(Matrix<double>::Zero(count, width));
  for (Index i = 0; i < count; ++i)
    // Only the upper triangle is R; below it stand the reflectors.
    for (Index j = i; j < width; ++j) r(i, j) = panel[j * n + i];
  const Matrix<double> v = explicit_reflectors(panel, n, rows, count);
  cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, m, c, 1, rest, stride, v.data(), m, 0, w.data(), m);
  cblas_dtrmm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, m, c, 1, t.data(), c,
              w.data(), m);
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, c, c, m, 1, v.data(), m, w.data(), m, 0, s.data(), c);
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, c, c, 1, t.data(), c, s.data(),
              c);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, c, c, -0.5, v.data(), m, s.data(), c, 1, w.data(),
              m);
  cblas_dsyr2k(CblasColMajor, CblasLower, CblasNoTrans, m, c, -1, v.data(), m, w.data(), m, 1, rest, stride);
}

// A row-major x is the column-major x^T, so Q stands at its right.
void BandForm::reflect(std::size_t panel, char transpose, Matrix<double>& x, Matrix<double>& work) const {
  const Index n = size(), first = static_cast<Index>(panel) * bandwidth_, below = first + bandwidth_;
  const blasint count = band_int(factors_[panel].rows()), columns = band_int(x.cols());
  LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'R', transpose, columns, band_int(n - below), count, count,
                       reflectors_.data() + first * n + below, band_int(n), factors_[panel].data(), count,
                       x.data() + below * x.cols(), columns, work.data());
}

Matrix<double> BandForm::to_band(Matrix<double> x) const {
  Matrix<double> work(bandwidth_, x.cols());
  for (std::size_t k = 0; k < factors_.size(); ++k) reflect(k, 'N', x, work);
  return x;
}

Matrix<double> BandForm::from_band(Matrix<double> x) const {
  Matrix<double> work(bandwidth_, x.cols());
  for (std::size_t k = factors_.size(); k-- > 0;) reflect(k, 'T', x, work);
  return x;
}

Matrix<double> BandForm::multiply_band(const Matrix<double>& x) const {
  Matrix<double> product(x.rows(), x.cols());
  for (std::size_t k = 0; k < diagonal_.size(); ++k) {
    // B is block tridiagonal: block row k reads blocks k - 1, k and k + 1, and the blocks above
    // the diagonal are transposes.
    const Index first = static_cast<Index>(k) * bandwidth_, width = diagonal_[k].rows();
    auto rows = product.middleRows(first, width);
    rows.noalias() = diagonal_[k] * x.middleRows(first, width);
    if (k < below_.size())
      rows.noalias() += below_[k].transpose() * x.middleRows(first + width, below_[k].rows());
    if (k > 0) rows.noalias() += below_[k - 1] * x.middleRows(first - bandwidth_, bandwidth_);
  }
  return product;
}

// Q = Q_0 (Q_1 (... I)): the panels before k leave the rows and columns from block k + 1 on to Q_k, so each panel's
// reflectors can make room for the columns that they change.
Matrix<double> BandForm::take_basis() {
  const Index n = size();
  Matrix<double> work(bandwidth_, n);
  for (std::size_t k = factors_.size(); k-- > 0;) {
    const Index first = static_cast<Index>(k) * bandwidth_, below = first + bandwidth_, rows = n - below;
    const Index count = factors_[k].rows();
    const Matrix<double> v = explicit_reflectors(reflectors_.data() + first * n + below, n, rows, count);
    reflectors_.block(below, below, count, rows).setIdentity();
    reflectors_.block(below, below, rows, count).setIdentity();
    LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'L', 'N', band_int(rows), band_int(rows), band_int(count),
                         band_int(count), v.data(), band_int(rows), factors_[k].data(), band_int(count),
                         reflectors_.data() + below * (n + 1), band_int(n), work.data());
  }
  reflectors_.topRows(bandwidth_).setIdentity();
  reflectors_.leftCols(bandwidth_).setIdentity();
  return std::move(reflectors_);
}

std::optional<BandCholesky> BandCholesky::of(const BandForm& form, double lambda) {
  BandCholesky result;
  // L_kk L_kk^T = B_kk + lambda I - L_{k,k-1} L_{k,k-1}^T, then L_{k+1,k} = B_{k+1,k} L_kk^-T. What LAPACK calls upper
  // in column-major order is the lower triangle of these row-major blocks.
  for (std::size_t k = 0; k < form.diagonal_.size(); ++k) {
    Matrix<double>& l = result.diagonal_.emplace_back(form.diagonal_[k]);
    const blasint width = band_int(l.rows());
    l.diagonal().array() += lambda;
    if (k > 0) {
      const Matrix<double>& above = result.below_[k - 1];
      const blasint inner = band_int(above.cols());
      cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, width, inner, -1, above.data(), inner, 1, l.data(),
                  width);
    }
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', width, l.data(), width) != 0) return std::nullopt;
    if (k == form.below_.size()) break;
    Matrix<double>& f = result.below_.emplace_back(form.below_[k]);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, band_int(f.rows()), width, 1,
                l.data(), width, f.data(), width);
  }
  return result;
}

void BandCholesky::whiten(Matrix<double>& x) const {
  const blasint columns = band_int(x.cols());
  double* rows = x.data();
  // Forward substitution, block row by block row: what is solved is taken from the next row at once.
  for (std::size_t k = 0; k < diagonal_.size(); ++k) {
    const blasint width = band_int(diagonal_[k].rows());
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, width, columns, 1,
                diagonal_[k].data(), width, rows, columns);
    double* const next = rows + diagonal_[k].rows() * x.cols();
    if (k < below_.size())
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, band_int(below_[k].rows()), columns, width, -1,
                  below_[k].data(), width, rows, columns, 1, next, columns);
    rows = next;
  }
}

void BandCholesky::unwhiten(Matrix<double>& x) const {
  const blasint columns = band_int(x.cols());
  double* rows = x.data() + x.size();
  // This is backward substitution with the transposed blocks, from the last row up.
  for (std::size_t k = diagonal_.size(); k-- > 0;) {
    const double* const next = rows;
    rows -= diagonal_[k].rows() * x.cols();
    const blasint width = band_int(diagonal_[k].rows());
    if (k < below_.size())
      cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, width, columns, band_int(below_[k].rows()), -1,
                  below_[k].data(), width, next, columns, 1, rows, columns);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, width, columns, 1,
                diagonal_[k].data(), width, rows, columns);
  }
}

double BandCholesky::log_determinant() const {
  double sum = 0;
  for (const Matrix<double>& l : diagonal_) sum += 2 * l.diagonal().array().log().sum();
  return sum;
}

}  // namespace widelimit::gp
