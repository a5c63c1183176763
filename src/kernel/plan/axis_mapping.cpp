#include "kernel/plan/axis_mapping.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace widelimit {
namespace {

/// Calls body(column, weight) for every entry of a row.
template <typename Body>
void for_each_entry(const SparseAxis& axis, Index row, const Body& body) {
  const auto a = static_cast<std::size_t>(row);
  for (std::size_t i = axis.begin[a]; i < axis.begin[a + 1]; ++i) body(axis.column[i], axis.weight[i]);
}

/// The transpose of a sparse matrix in compressed rows, by counting. Rows of the result have their columns in
/// ascending order.
SparseAxis transposed(const SparseAxis& axis) {
  SparseAxis result{.columns = axis.rows()};
  result.begin.assign(static_cast<std::size_t>(axis.columns) + 1, 0);
  for (const Index column : axis.column) ++result.begin[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  result.column.resize(axis.column.size());
  result.weight.resize(axis.column.size());
  std::vector<std::size_t> next = result.begin;
  for (Index row = 0; row < axis.rows(); ++row)
    for_each_entry(axis, row, [&](Index column, double weight) {
      const std::size_t place = next[static_cast<std::size_t>(column)]++;
      result.column[place] = row;
      result.weight[place] = weight;
    });
  return result;
}

}  // namespace

AxisMapping::AxisMapping(const SparseAxis& left, const SparseAxis& right)
    : left_{left}, right_{right}, left_readers_{transposed(left)}, right_readers_{transposed(right)} {}

std::vector<Index> AxisMapping::offsets_in_front(const std::vector<Index>& wanted) const {
  // Offsets are b - a, so they run from 1 - (left size) to (right size) - 1.
  const Index least = 1 - left_.columns;
  std::vector<std::uint8_t> is_needed(static_cast<std::size_t>(left_.columns + right_.columns - 1), 0);
  for (const Index offset : wanted)
    for (Index a = std::max<Index>(0, -offset); a < std::min(left_.rows(), right_.rows() - offset); ++a)
      for_each_entry(left_, a, [&](Index i, double) {
        for_each_entry(right_, a + offset,
                       [&](Index j, double) { is_needed[static_cast<std::size_t>(j - i - least)] = 1; });
      });
  std::vector<Index> offsets;
  for (std::size_t i = 0; i < is_needed.size(); ++i)
    if (is_needed[i] != 0) offsets.push_back(least + static_cast<Index>(i));
  return offsets;
}

std::vector<AxisTerm> AxisMapping::terms(Index offset) const {
  std::vector<AxisTerm> result;
  for (Index i = std::max<Index>(0, -offset); i < std::min(left_.columns, right_.columns - offset); ++i)
    for_each_entry(left_readers_, i, [&](Index a, double weight) {
      for_each_entry(right_readers_, i + offset, [&](Index b, double right_weight) {
        result.push_back({b - a, a, i, weight * right_weight});
      });
    });
  // This order makes every entry after the map add up its terms in one order, whatever is demanded.
  std::sort(result.begin(), result.end(), [](const AxisTerm& one, const AxisTerm& other) {
    return std::tie(one.offset, one.row, one.position) < std::tie(other.offset, other.row, other.position);
  });
  return result;
}

}  // namespace widelimit
