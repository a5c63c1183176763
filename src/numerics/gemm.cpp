#include "numerics/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <vector>

#include "numerics/blas_memory.hpp"

namespace widelimit::numerics {
namespace {

CBLAS_TRANSPOSE flag(Transpose transpose) { return transpose == Transpose::yes ? CblasTrans : CblasNoTrans; }

blasint size(std::ptrdiff_t value) { return static_cast<blasint>(value); }

std::vector<double> rows_in_double(const MatrixView<float>& matrix, std::ptrdiff_t rows,
                                   std::ptrdiff_t columns) {
  std::vector<double> copy;
  copy.reserve(static_cast<std::size_t>(rows * columns));
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    const float* row = matrix.data + i * matrix.leading;
    copy.insert(copy.end(), row, row + columns);
  }
  return copy;
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          float alpha, const MatrixView<float>& a, const MatrixView<float>& b, float beta, float* c,
          std::ptrdiff_t leading) {
  // BLAS would ask for its buffer for ever where the address space ends (blas_memory.hpp).
  reserve_blas_buffers(1, 0);
  cblas_sgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a.data,
              size(a.leading), b.data, size(b.leading), beta, c, size(leading));
}

void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          double alpha, const MatrixView<double>& a, const MatrixView<double>& b, double beta, double* c,
          std::ptrdiff_t leading) {
  reserve_blas_buffers(1, 0);
  cblas_dgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a.data,
              size(a.leading), b.data, size(b.leading), beta, c, size(leading));
}

void product_in_double(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, double alpha,
                       const MatrixView<float>& a, const MatrixView<float>& b, float* c,
                       std::ptrdiff_t leading) {
  // So many rows are rounded while they are in the cache. Their memory is kept by the thread: it would be cleared anew
  // for every tile, which takes as long as the product of a few channels.
  constexpr std::ptrdiff_t rows_together = 64;
  thread_local std::vector<double> product;
  const auto numbers = static_cast<std::size_t>(std::min(m, rows_together) * n);
  if (product.size() < numbers) product.resize(numbers);
  const std::vector<double> left = rows_in_double(a, m, k), right = rows_in_double(b, n, k);
  for (std::ptrdiff_t first = 0; first < m; first += rows_together) {
    const std::ptrdiff_t rows = std::min(rows_together, m - first);
    gemm(Transpose::no, Transpose::yes, rows, n, k, alpha, {left.data() + first * k, k}, {right.data(), k},
         0.0, product.data(), n);
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      std::transform(product.data() + i * n, product.data() + (i + 1) * n, c + (first + i) * leading,
                     [](double value) { return static_cast<float>(value); });
  }
}

}  // namespace widelimit::numerics
