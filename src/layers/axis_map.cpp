#include "layers/axis_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Each row one entry of weight 1.
AxisMap selection(std::vector<Index> positions, Index size) {
  std::vector<double> weights(positions.size(), 1.0);
  return {.columns = size, .width = 1, .first = std::move(positions), .weights = std::move(weights)};
}

double triangle(double x) { return std::max(0.0, 1 - x); }

/// Keys 1981, equation 15, with a = -1/2.
double cubic(double x) {
  if (x < 1) return ((1.5 * x - 2.5) * x) * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

/// The weights of all positions for the place `centre` among them, normalised; zeros if there are none.
void write_resize_row(double centre, double scale, ResizeMethod method, Eigen::Ref<Matrix<double>> row) {
  constexpr double least_total = 1000 * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < row.cols(); ++i) {
    const double x = std::abs(centre - static_cast<double>(i)) / scale;
    row(0, i) = method == ResizeMethod::cubic ? cubic(x) : triangle(x);
  }
  const double total = row.sum();
  if (std::abs(total) > least_total)
    row /= total;
  else
    row.setZero();
}

}  // namespace

void require_axis_length(Index size) {
  if (size > longest_axis)
    throw ArgumentError(fmt::format("expected at most {} positions, got {}", longest_axis, size));
}

AxisMap identity_map(Index size) {
  std::vector<Index> positions(static_cast<std::size_t>(size));
  for (Index a = 0; a < size; ++a) positions[static_cast<std::size_t>(a)] = a;
  return selection(std::move(positions), size);
}

AxisMap slice_map(const SliceAxis& slice, Index size) {
  const Index step = slice.step;
  // Backwards, the position in front of the first one is a border too.
  const Index least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  const auto place = [&](const std::optional<Index>& position, Index otherwise) {
    if (!position) return otherwise;
    return std::clamp(*position < 0 ? *position + size : *position, least, most);
  };
  const Index begin = place(slice.begin, step > 0 ? 0 : size - 1);
  const Index end = place(slice.end, step > 0 ? size : -1);
  std::vector<Index> positions;
  for (Index a = begin; step > 0 ? a < end : a > end; a += step) positions.push_back(a);
  if (positions.empty()) throw ArgumentError(fmt::format("no position is left of {}", size));
  return selection(std::move(positions), size);
}

AxisMap position_map(Index position, Index size) {
  if (position < -size || position >= size)
    throw ArgumentError(fmt::format("expected a position from {} to {}, got {}", -size, size - 1, position));
  return selection({position < 0 ? position + size : position}, size);
}

AxisMap resize_map(Index size, Index new_size, ResizeMethod method, bool antialias) {
  if (size == new_size) return identity_map(size);
  if (method == ResizeMethod::nearest) {
    std::vector<Index> positions;
    for (Index a = 0; a < new_size; ++a) positions.push_back((2 * a + 1) * size / (2 * new_size));
    return selection(std::move(positions), size);
  }
  const double shrinking = static_cast<double>(size) / static_cast<double>(new_size);
  Matrix<double> matrix(new_size, size);
  for (Index a = 0; a < new_size; ++a)
    write_resize_row((static_cast<double>(a) + 0.5) * shrinking - 0.5,
                     antialias ? std::max(shrinking, 1.0) : 1.0, method, matrix.row(a));
  return matrix_map(matrix);
}

AxisMap spread_map(Index size, Index stride, Index front, Index new_size) {
  AxisMap map = selection(std::vector<Index>(static_cast<std::size_t>(new_size), 0), size);
  std::fill(map.weights.begin(), map.weights.end(), 0.0);
  for (Index i = 0; i < size; ++i) {
    const auto place = static_cast<std::size_t>((front + stride * i) % new_size);
    map.first[place] = i;
    map.weights[place] = 1;
  }
  return map;
}

AxisMap matrix_map(const Matrix<double>& matrix) {
  AxisMap map{.columns = matrix.cols()};
  for (Index a = 0; a < matrix.rows(); ++a) {
    Index begin = 0, end = matrix.cols();
    while (begin < end && matrix(a, begin) == 0) ++begin;
    while (end > begin && matrix(a, end - 1) == 0) --end;
    map.first.push_back(begin);
    map.width = std::max(map.width, end - begin);
  }
  for (Index a = 0; a < matrix.rows(); ++a) {
    Index& first = map.first[static_cast<std::size_t>(a)];
    first = std::min(first, map.columns - map.width);
    for (Index t = 0; t < map.width; ++t) map.weights.push_back(matrix(a, first + t));
  }
  return map;
}

}  // namespace widelimit::layers
