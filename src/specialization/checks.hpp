#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/specialization/activation.hpp"

/// Argument checks shared by the functions of this folder; messages read "where: field must ..., got ...".
namespace widelimit::specialization {

/// Of numerics::symmetric_root(), for differences of overlaps.
inline constexpr double overlap_rounding = 1e-6;

template <typename Derived>
void check_finite(std::string_view where, std::string_view field, const Eigen::MatrixBase<Derived>& values) {
  for (Index i = 0; i < values.rows(); ++i)
    for (Index j = 0; j < values.cols(); ++j)
      if (!std::isfinite(values(i, j)))
        throw ArgumentError(
            fmt::format("{}: {} must be finite, got {} at ({}, {})", where, field, values(i, j), i, j));
}

template <typename Derived>
void check_shape(std::string_view where, std::string_view field, const Eigen::MatrixBase<Derived>& values,
                 Index rows, Index columns) {
  if (values.rows() != rows || values.cols() != columns)
    throw ArgumentError(fmt::format("{}: {} must be {} x {}, got {} x {}", where, field, rows, columns,
                                    values.rows(), values.cols()));
}

inline void check_positive(std::string_view where, std::string_view field, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {}", where, field, value));
}

inline void check_at_least(std::string_view where, std::string_view field, Index value, Index least) {
  if (value < least)
    throw ArgumentError(fmt::format("{}: {} must be at least {}, got {}", where, field, least, value));
}

/// Bounds what would run for days, or for ever, if a number were mistyped.
inline void check_at_most(std::string_view where, std::string_view field, Index value, Index most) {
  if (value > most)
    throw ArgumentError(fmt::format("{}: {} must be at most {}, got {}", where, field, most, value));
}

/// b has one entry a head, v as many as the activation has scales.
inline void check_offsets(std::string_view where, HeadActivation activation, Index heads,
                          const Vector<double>& b, const Vector<double>& v) {
  if (b.size() != heads)
    throw ArgumentError(fmt::format("{}: b must have one entry a head ({}), got {}", where, heads, b.size()));
  const Index scales = scale_count(activation, heads);
  if (v.size() != scales)
    throw ArgumentError(fmt::format("{}: v of {} must have {} entries for {} heads, got {}", where,
                                    head_activation_name(activation), scales, heads, v.size()));
  check_finite(where, "b", b);
  check_finite(where, "v", v);
}

}  // namespace widelimit::specialization
