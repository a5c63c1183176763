#pragma once

#include <cstdint>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

/// What samples of functions are made of.
namespace widelimit::gp {

/// Standard normal numbers of sample k.
[[nodiscard]] Matrix<double> normal_matrix(Index rows, Index columns, std::uint64_t seed, Index k);

/// R with R R^T the covariance. Eigenvalues below 0 within the rounding of the prior count as 0; NumericalError,
/// preceded by `where`, for others.
[[nodiscard]] Matrix<double> root_of(Matrix<double> covariance, const Matrix<double>& prior,
                                     const char* where);

/// Streams of a seed for functions of the prior begin here: those of the posterior of the same seed use other numbers.
inline constexpr auto first_prior_stream = static_cast<Index>(std::uint64_t{1} << 62U);

}  // namespace widelimit::gp
