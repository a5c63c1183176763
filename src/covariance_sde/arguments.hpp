#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

/// Argument checks shared by the functions of this folder; messages read "where: what must ..., got ...".
namespace widelimit::covariance_sde {

inline void require_finite(std::string_view where, std::string_view what, double value) {
  if (!std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be finite, got {}", where, what, value));
}

inline void require_positive(std::string_view where, std::string_view what, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {}", where, what, value));
}

inline void require_at_least(std::string_view where, std::string_view what, Eigen::Index value,
                             Eigen::Index least) {
  if (value < least)
    throw ArgumentError(fmt::format("{}: {} must be at least {}, got {}", where, what, least, value));
}

/// Bounds what would run for days, or for ever, if a number were mistyped.
inline void require_at_most(std::string_view where, std::string_view what, Eigen::Index value,
                            Eigen::Index most) {
  if (value > most)
    throw ArgumentError(fmt::format("{}: {} must be at most {}, got {}", where, what, most, value));
}

template <typename Derived>
void require_shape(std::string_view where, std::string_view what, const Eigen::MatrixBase<Derived>& matrix,
                   Eigen::Index rows, Eigen::Index columns) {
  if (matrix.rows() != rows || matrix.cols() != columns)
    throw ArgumentError(fmt::format("{}: {} must be {} x {}, got {} x {}", where, what, rows, columns,
                                    matrix.rows(), matrix.cols()));
}

/// ArgumentError unless `v` is a covariance: not empty, square, finite, symmetric to 1e-12 and positive
/// semidefinite to 1e-10 of its largest entry or eigenvalue.
void require_covariance(std::string_view where, const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
