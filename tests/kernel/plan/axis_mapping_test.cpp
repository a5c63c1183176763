// Maps along an axis, against their matrices.
#include "kernel/plan/axis_mapping.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>

#include "widelimit/matrix.hpp"

namespace widelimit::testing {
namespace {

/// About a third of the entries; rows and columns may be empty.
Matrix<double> sparse_numbers(std::mt19937& generator, Index rows, Index columns) {
  std::uniform_int_distribution<int> number(-4, 2);
  Matrix<double> matrix(rows, columns);
  for (double& entry : matrix.reshaped()) entry = std::max(0, number(generator));
  return matrix;
}

SparseAxis axis_of(const Matrix<double>& matrix) {
  SparseAxis axis{.columns = matrix.cols()};
  for (Index a = 0; a < matrix.rows(); ++a) {
    for (Index i = 0; i < matrix.cols(); ++i) {
      if (matrix(a, i) == 0) continue;
      axis.column.push_back(i);
      axis.weight.push_back(matrix(a, i));
    }
    axis.begin.push_back(axis.column.size());
  }
  return axis;
}

/// Offsets j - i with entries of both matrices in rows whose numbers differ by a wanted offset.
std::vector<Index> needed_offsets(const Matrix<double>& left, const Matrix<double>& right,
                                  const std::vector<Index>& wanted) {
  std::set<Index> offsets;
  for (Index a = 0; a < left.rows(); ++a)
    for (Index b = 0; b < right.rows(); ++b)
      for (Index i = 0; i < left.cols(); ++i)
        for (Index j = 0; j < right.cols(); ++j)
          if (std::find(wanted.begin(), wanted.end(), b - a) != wanted.end() && left(a, i) * right(b, j) != 0)
            offsets.insert(j - i);
  return {offsets.begin(), offsets.end()};
}

TEST_CASE("maps along an axis: offsets in front, and what every entry adds to") {
  std::mt19937 generator(5);
  for (const auto& [rows, right_rows, columns, right_columns] :
       std::vector<std::array<Index, 4>>{{3, 3, 6, 6}, {7, 4, 3, 5}, {1, 5, 4, 1}, {4, 4, 4, 4}}) {
    const Matrix<double> left = sparse_numbers(generator, rows, columns),
                         right = sparse_numbers(generator, right_rows, right_columns);
    const AxisMapping mapping(axis_of(left), axis_of(right));
    for (const std::vector<Index>& wanted : {std::vector<Index>{0}, {-1, 1}, {-6, -2, 0, 3}, {}})
      CHECK(mapping.offsets_in_front(wanted) == needed_offsets(left, right, wanted));
    const Matrix<double> covariance = Matrix<double>::Random(columns, right_columns);
    Matrix<double> mapped = Matrix<double>::Zero(rows, right_rows);
    for (Index offset = 1 - columns; offset < right_columns; ++offset) {
      const std::vector<AxisTerm> terms = mapping.terms(offset);
      CHECK(std::is_sorted(terms.begin(), terms.end(), [](const AxisTerm& one, const AxisTerm& other) {
        return std::tuple(one.offset, one.row, one.position) <
               std::tuple(other.offset, other.row, other.position);
      }));
      for (const AxisTerm& term : terms)
        mapped(term.row, term.row + term.offset) +=
            term.weight * covariance(term.position, term.position + offset);
    }
    CHECK((mapped - left * covariance * right.transpose()).norm() <= 1e-13);
  }
}

}  // namespace
}  // namespace widelimit::testing
