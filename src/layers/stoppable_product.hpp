#pragma once

#include <algorithm>
#include <cstddef>

#include "numerics/gemm.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::layers {

/// numerics::gemm() for matrices of any size, one slice of rows after the other. Between slices it asks whether to
/// stop.
template <typename Scalar>
void stoppable_gemm(const StopRequest& stop, numerics::Transpose transpose_a, numerics::Transpose transpose_b,
                    std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, Scalar alpha,
                    const numerics::MatrixView<Scalar>& a, const numerics::MatrixView<Scalar>& b, Scalar beta,
                    Scalar* c, std::ptrdiff_t leading) {
  constexpr std::ptrdiff_t slice_products = 500'000'000, fewest_rows = 64;
  const std::ptrdiff_t rows = std::max(slice_products / std::max<std::ptrdiff_t>(n * k, 1), fewest_rows);
  const std::ptrdiff_t to_next_row = transpose_a == numerics::Transpose::no ? a.leading : 1;
  for (std::ptrdiff_t row = 0; row < m; row += rows) {
    stop.check();
    numerics::gemm(transpose_a, transpose_b, std::min(rows, m - row), n, k, alpha,
                   {a.data + row * to_next_row, a.leading}, b, beta, c + row * leading, leading);
  }
}

}  // namespace widelimit::layers
