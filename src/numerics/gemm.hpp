#pragma once

#include <cstddef>

/// Row-major matrix products through BLAS.
namespace widelimit::numerics {

enum class Transpose { no, yes };

/// A row-major matrix in memory; `leading` numbers lie from one row to the next.
template <typename Scalar>
struct MatrixView {
  const Scalar* data;
  std::ptrdiff_t leading;
};

/// C = alpha op(A) op(B) + beta C with op(A) [m, k], op(B) [k, n], C [m, n] with `leading` numbers from row
/// to row. Calls BLAS on as many threads as it is set to (see blas_threads.hpp).
void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          float alpha, const MatrixView<float>& a, const MatrixView<float>& b, float beta, float* c,
          std::ptrdiff_t leading);
void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          double alpha, const MatrixView<double>& a, const MatrixView<double>& b, double beta, double* c,
          std::ptrdiff_t leading);

/// C = alpha A B^T with A [m, k], B [n, k], added up in double and rounded once. Half as fast as gemm();
/// works on copies in double.
void product_in_double(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, double alpha,
                       const MatrixView<float>& a, const MatrixView<float>& b, float* c,
                       std::ptrdiff_t leading);

}  // namespace widelimit::numerics
