#pragma once

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

namespace widelimit {

template <typename Scalar>
void check_cotangent(const Matrix<Scalar>& cotangent, const char* where, const char* kernel, Index rows,
                     Index columns) {
  if (cotangent.size() == 0) return;
  if (cotangent.rows() != rows || cotangent.cols() != columns)
    throw ArgumentError(fmt::format("{}: the cotangents of the {} must be [{}, {}], got [{}, {}]", where,
                                    kernel, rows, columns, cotangent.rows(), cotangent.cols()));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      if (!std::isfinite(cotangent(i, j)))
        throw ArgumentError(fmt::format("{}: the cotangents of the {} must be finite, got {} at ({}, {})",
                                        where, kernel, cotangent(i, j), i, j));
}

/// Throws ArgumentError, naming the function `where`, unless the cotangents fit a result of this size.
template <typename Scalar>
void check_cotangents(const KernelCotangents<Scalar>& cotangents, const char* where, Index rows,
                      Index columns) {
  // An empty matrix stands for cotangents that are not given. Without pairs all cotangents are empty.
  if (rows > 0 && columns > 0 && cotangents.nngp.size() == 0 && cotangents.ntk.size() == 0)
    throw ArgumentError(
        fmt::format("{}: cotangents of the nngp, the ntk or both must be given, got none", where));
  check_cotangent(cotangents.nngp, where, "nngp", rows, columns);
  check_cotangent(cotangents.ntk, where, "ntk", rows, columns);
}

}  // namespace widelimit
