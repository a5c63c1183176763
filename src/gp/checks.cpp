#include "gp/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

constexpr double symmetry_tolerance = 1e-6;
constexpr Index tile = 64;  // two tiles of doubles fill a 64 KB cache: the transposed reads stay cheap

bool mirrors(double upper, double lower, double scale) {
  return std::abs(upper - lower) <= symmetry_tolerance * scale;
}

// Counted without a branch, so that the compiler vectorizes it; Eigen's allFinite() walks down the columns,
// against the row-major grain, and is twenty times slower.
bool row_is_finite(const double* row, Index size) {
  std::int64_t finite = 0;
  for (Index j = 0; j < size; ++j) finite += std::abs(row[j]) <= std::numeric_limits<double>::max() ? 1 : 0;
  return finite == size;
}

// Square roots of the diagonal, the natural scale of the entries of a positive semidefinite matrix.
Vector<double> diagonal_roots(const Matrix<double>& gram) { return gram.diagonal().cwiseAbs().cwiseSqrt(); }

// Whether the tile at (row, column) mirrors the one at (column, row). A NaN or an infinity anywhere makes
// some comparison fail (inf - inf is NaN), so the fast pass need not look for them. Bound by memory: a
// transposed copy of the tile, to compare along rows, is slower.
bool tile_is_symmetric(const Matrix<double>& gram, const Vector<double>& roots, Index row, Index column) {
  const Index row_end = std::min(row + tile, gram.rows()), column_end = std::min(column + tile, gram.cols());
  bool symmetric = true;
  for (Index i = row; i < row_end; ++i)
    for (Index j = column; j < column_end; ++j)
      symmetric &= mirrors(gram(i, j), gram(j, i), roots(i) * roots(j));
  return symmetric;
}

bool is_symmetric(const Matrix<double>& gram, const Vector<double>& roots, int threads) {
  const Index tiles = (gram.rows() + tile - 1) / tile;
  std::atomic<bool> symmetric = true;
  numerics::on_threads(threads, [&] {
    // Tiles on and below the diagonal meet all others.
    numerics::for_each_task(tiles, {}, [&](Index t) {
      for (Index other = 0; other <= t && symmetric.load(std::memory_order_relaxed); ++other)
        if (!tile_is_symmetric(gram, roots, t * tile, other * tile)) symmetric = false;
    });
  });
  return symmetric;
}

void report_asymmetry(const Matrix<double>& gram, const Vector<double>& roots, std::string_view where,
                      std::string_view name) {
  for (Index i = 0; i < gram.rows(); ++i)
    for (Index j = i + 1; j < gram.cols(); ++j)
      if (!mirrors(gram(i, j), gram(j, i), roots(i) * roots(j)))
        throw ArgumentError(
            fmt::format("{}: {} must be symmetric, but entry ({}, {}) is {} and entry ({}, {}) is {} "
                        "(indices from 0)",
                        where, name, i, j, gram(i, j), j, i, gram(j, i)));
}

}  // namespace

void require_shape(const ConstMatrixRef& matrix, Index rows, Index columns, std::string_view where,
                   std::string_view name) {
  if ((rows < 0 || matrix.rows() == rows) && (columns < 0 || matrix.cols() == columns)) return;
  const auto extent = [](Index n) { return n < 0 ? std::string("any") : std::to_string(n); };
  throw ArgumentError(fmt::format("{}: {} must be [{}, {}], got [{}, {}]", where, name, extent(rows),
                                  extent(columns), matrix.rows(), matrix.cols()));
}

void require_finite(const ConstMatrixRef& matrix, std::string_view where, std::string_view name) {
  for (Index i = 0; i < matrix.rows(); ++i) {
    if (matrix.cols() == 0 || row_is_finite(&matrix.coeffRef(i, 0), matrix.cols())) continue;
    for (Index j = 0; j < matrix.cols(); ++j)
      if (!std::isfinite(matrix(i, j)))
        throw ArgumentError(fmt::format("{}: {} must be finite, but entry ({}, {}) (indices from 0) is {}",
                                        where, name, i, j, matrix(i, j)));
  }
}

void require_gram(const Matrix<double>& gram, std::string_view where, std::string_view name, int threads) {
  if (gram.rows() != gram.cols() || gram.rows() == 0)
    throw ArgumentError(fmt::format("{}: {} must be square with at least one row, got [{}, {}]", where, name,
                                    gram.rows(), gram.cols()));
  const Vector<double> roots = diagonal_roots(gram);
  // The fast pass fails for NaN and infinity as well, so the cause is looked for only after it has failed.
  if (!is_symmetric(gram, roots, threads)) {
    require_finite(gram, where, name);
    report_asymmetry(gram, roots, where, name);
  }
  if (gram.trace() < 0)
    throw ArgumentError(fmt::format("{}: {} must have variances on its diagonal, but their mean is {}", where,
                                    name, gram.diagonal().mean()));
}

void require_targets(const Matrix<double>& targets, Index n, std::string_view where) {
  require_shape(targets, n, -1, where, "the targets");
  if (targets.cols() == 0)
    throw ArgumentError(fmt::format("{}: the targets must have at least one column", where));
  require_finite(targets, where, "the targets");
}

void require_cross_gram(const ConstMatrixRef& cross_gram, Index n, std::string_view where,
                        std::string_view name) {
  require_shape(cross_gram, -1, n, where, name);
  require_finite(cross_gram, where, name);
}

void require_inputs_of(std::span<const Index> inputs, Index n, std::string_view where) {
  if (inputs.empty()) throw ArgumentError(fmt::format("{}: expected an input or more, got none", where));
  for (const Index i : inputs)
    if (i < 0 || i >= n)
      throw ArgumentError(fmt::format("{}: expected inputs of 0 .. {}, got {}", where, n - 1, i));
}

void require_test_variances(const Vector<double>& variances, Index n_test, std::string_view where) {
  if (variances.size() != n_test)
    throw ArgumentError(
        fmt::format("{}: expected the variances of {} test inputs, got {}", where, n_test, variances.size()));
  for (Index i = 0; i < n_test; ++i)
    if (!(variances(i) >= 0) || !std::isfinite(variances(i)))
      throw ArgumentError(
          fmt::format("{}: the variance of test input {} must be finite and not negative, got {}", where, i,
                      variances(i)));
}

void require_not_negative(double number, std::string_view where, std::string_view name) {
  if (!(number >= 0) || !std::isfinite(number))
    throw ArgumentError(fmt::format("{}: {} must be finite and not negative, got {}", where, name, number));
}

void require_amplitude(double amplitude, std::string_view where) {
  if (!(amplitude > 0) || !std::isfinite(amplitude))
    throw ArgumentError(
        fmt::format("{}: the amplitude must be positive and finite, got {}", where, amplitude));
}

void require_fitted_amplitude(double amplitude, std::string_view where) {
  if (amplitude > 0) return;
  throw NumericalError(fmt::format(
      "{}: the targets are all 0, so that no amplitude fits them; with_amplitude() gives one", where));
}

void require_test_gram(const Matrix<double>& test_gram, Index n_test, std::string_view where, int threads) {
  require_shape(test_gram, n_test, n_test, where, "the test Gram matrix");
  if (n_test > 0) require_gram(test_gram, where, "the test Gram matrix", threads);
}

}  // namespace widelimit::gp
