#include "numerics/gemm.hpp"

#include <cblas.h>

#include "numerics/blas_memory.hpp"

namespace widelimit::numerics {
namespace {

CBLAS_TRANSPOSE flag(Transpose transpose) { return transpose == Transpose::yes ? CblasTrans : CblasNoTrans; }

blasint size(std::ptrdiff_t value) { return static_cast<blasint>(value); }

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          float alpha, const MatrixView<float>& a, const MatrixView<float>& b, float beta, float* c,
          std::ptrdiff_t leading) {
  require_blas_buffer();
  cblas_sgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a.data,
              size(a.leading), b.data, size(b.leading), beta, c, size(leading));
}

void gemm(Transpose transpose_a, Transpose transpose_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
          double alpha, const MatrixView<double>& a, const MatrixView<double>& b, double beta, double* c,
          std::ptrdiff_t leading) {
  require_blas_buffer();
  cblas_dgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a.data,
              size(a.leading), b.data, size(b.leading), beta, c, size(leading));
}

}  // namespace widelimit::numerics
