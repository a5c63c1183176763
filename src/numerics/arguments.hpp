#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

/// Argument checks of the theories: ArgumentErrors "where: what must ..., got ...".
namespace widelimit::numerics {

using Eigen::Index;

inline void require_finite(std::string_view where, std::string_view what, double value) {
  if (!std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be finite, got {}", where, what, value));
}

template <typename Derived>
void require_finite(std::string_view where, std::string_view what, const Eigen::MatrixBase<Derived>& values) {
  for (Index i = 0; i < values.rows(); ++i)
    for (Index j = 0; j < values.cols(); ++j)
      if (!std::isfinite(values(i, j)))
        throw ArgumentError(
            fmt::format("{}: {} must be finite, got {} at ({}, {})", where, what, values(i, j), i, j));
}

inline void require_positive(std::string_view where, std::string_view what, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {}", where, what, value));
}

inline void require_not_negative(std::string_view where, std::string_view what, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be at least 0 and finite, got {}", where, what, value));
}

inline void require_at_least(std::string_view where, std::string_view what, double value, double least) {
  if (!(value >= least) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be at least {}, got {}", where, what, least, value));
}

template <std::integral Count>
void require_at_least(std::string_view where, std::string_view what, Count value,
                      std::type_identity_t<Count> least) {
  if (value < least)
    throw ArgumentError(fmt::format("{}: {} must be at least {}, got {}", where, what, least, value));
}

/// Bounds what would run for days, or for ever, if a number were mistyped.
inline void require_at_most(std::string_view where, std::string_view what, Index value, Index most) {
  if (value > most)
    throw ArgumentError(fmt::format("{}: {} must be at most {}, got {}", where, what, most, value));
}

inline void require_index(std::string_view where, std::string_view what, Index value, Index size) {
  if (value < 0 || value >= size)
    throw ArgumentError(fmt::format("{}: {} must lie in [0, {}), got {}", where, what, size, value));
}

/// A square matrix; entries may differ from those across the diagonal by `rounding` of the largest.
template <typename Derived>
void require_symmetric(std::string_view where, std::string_view what,
                       const Eigen::MatrixBase<Derived>& matrix, double rounding = 1e-12) {
  const double scale = matrix.size() > 0 ? matrix.cwiseAbs().maxCoeff() : 0;
  for (Index i = 0; i < matrix.rows(); ++i)
    for (Index j = 0; j < i; ++j)
      if (!(std::abs(matrix(i, j) - matrix(j, i)) <= rounding * scale))
        throw ArgumentError(fmt::format("{}: {} must be symmetric, got {} at ({}, {}) and {} at ({}, {})",
                                        where, what, matrix(i, j), i, j, matrix(j, i), j, i));
}

template <typename Derived>
void require_shape(std::string_view where, std::string_view what, const Eigen::MatrixBase<Derived>& matrix,
                   Index rows, Index columns) {
  if (matrix.rows() != rows || matrix.cols() != columns)
    throw ArgumentError(fmt::format("{}: {} must be {} x {}, got {} x {}", where, what, rows, columns,
                                    matrix.rows(), matrix.cols()));
}

}  // namespace widelimit::numerics
