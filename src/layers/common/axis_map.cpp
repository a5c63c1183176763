#include "layers/common/axis_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Every row has one entry of weight 1.
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

/// The entries of a row, from `first` on.
struct BandRow {
  Index first = 0;
  std::vector<double> weights = {};
};

/// Rows as wide as the widest of them. Those that would reach over the end begin earlier, with zeros in front.
AxisMap banded(const std::vector<BandRow>& rows, Index columns) {
  AxisMap map{.columns = columns};
  for (const BandRow& row : rows) map.width = std::max(map.width, std::ssize(row.weights));
  map.weights.assign(rows.size() * static_cast<std::size_t>(map.width), 0.0);
  auto place = map.weights.begin();
  for (const BandRow& row : rows) {
    map.first.push_back(std::min(row.first, columns - map.width));
    std::copy(row.weights.begin(), row.weights.end(), place + (row.first - map.first.back()));
    place += map.width;
  }
  return map;
}

/// Row a of a resized axis. Distances are ratios of integers: the centre of position i is |n| / (2 size) steps of the
/// new axis, or |n| / (2 new_size) steps of the old one, from that of a, where n = (2 a + 1) size - (2 i + 1)
/// new_size. Weights are then exactly 0 where the kernel is 0, so that rounding never decides whether a row reads a
/// position.
class ResizedRow {
 public:
  ResizedRow(Index a, Index size, Index new_size, ResizeMethod method, bool antialias)
      : size_{size},
        new_size_{new_size},
        place_{(2 * a + 1) * size},
        unit_{2 * (antialias ? std::max(size, new_size) : new_size)},
        method_{method} {}

  /// The normalised weights; all 0 if the row sees no position.
  [[nodiscard]] BandRow weights() const {
    constexpr double least_total = 1000 * std::numeric_limits<double>::epsilon();
    const Index reach = unit_ * (method_ == ResizeMethod::cubic ? 2 : 1);
    BandRow row{.first = std::clamp<Index>(position_before(place_ - reach), 0, size_ - 1)};
    Index end = std::clamp<Index>(position_before(place_ + reach) + 2, row.first + 1, size_);
    // position_before() may be one position off, so entries at the ends whose weight is 0 are dropped.
    while (end > row.first + 1 && weight(end - 1) == 0) --end;
    while (end > row.first + 1 && weight(row.first) == 0) ++row.first;
    double total = 0;
    for (Index i = row.first; i < end; ++i) {
      row.weights.push_back(weight(i));
      total += row.weights.back();
    }
    for (double& weight : row.weights) weight = std::abs(total) > least_total ? weight / total : 0;
    return row;
  }

 private:
  /// The last position whose centre is at `place` or before it, or the one before that.
  [[nodiscard]] Index position_before(Index place) const { return (place - new_size_) / (2 * new_size_) - 1; }

  [[nodiscard]] double weight(Index i) const {
    const Index distance = std::abs(place_ - (2 * i + 1) * new_size_);
    const double x = static_cast<double>(distance) / static_cast<double>(unit_);
    return method_ == ResizeMethod::cubic ? cubic(x) : triangle(x);
  }

  Index size_, new_size_;
  Index place_;  ///< The row's centre among the old positions, times 2 new_size.
  Index unit_;   ///< The unit of the kernel's argument, on the same scale.
  ResizeMethod method_;
};

/// How often a window sees each position. The window begins at `begin`, which may be before the axis; a circular one
/// that is longer than the axis sees positions several times.
BandRow window_row(Index begin, Index taps, Index size, Padding padding) {
  const bool is_inside = begin >= 0 && begin + taps <= size;
  if (padding != Padding::circular || is_inside) {
    const Index first = std::clamp<Index>(begin, 0, size), end = std::clamp<Index>(begin + taps, first, size);
    return {first, std::vector<double>(static_cast<std::size_t>(end - first), 1.0)};
  }
  BandRow row{0, std::vector<double>(static_cast<std::size_t>(size), 0.0)};
  for (Index o = 0; o < taps; ++o)
    row.weights[static_cast<std::size_t>(((begin + o) % size + size) % size)] += 1;
  return row;
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
  const Index step = std::clamp(slice.step, -size, size);  // longer steps choose the same positions
  // Backwards, the position before the first one is a border too.
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
  std::vector<BandRow> rows;
  for (Index a = 0; a < new_size; ++a)
    rows.push_back(ResizedRow(a, size, new_size, method, antialias).weights());
  return banded(rows, size);
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

AxisMap pool_map(Index size, const Window& window, std::size_t axis, Index divisor) {
  const Index taps = window.sizes[axis], stride = window.strides[axis];
  const Index front = padding_front(size, taps, stride, window.padding);
  const Index new_size = window_output_size(size, taps, stride, window.padding);
  std::vector<BandRow> rows;
  for (Index a = 0; a < new_size; ++a) {
    BandRow row = window_row(stride * a - front, taps, size, window.padding);
    const double seen = std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
    for (double& weight : row.weights) weight /= divisor == 0 ? seen : static_cast<double>(divisor);
    rows.push_back(std::move(row));
  }
  return banded(rows, size);
}

AxisMap matrix_map(const Matrix<double>& matrix) {
  std::vector<BandRow> rows;
  for (Index a = 0; a < matrix.rows(); ++a) {
    Index begin = 0, end = matrix.cols();
    while (begin < end && matrix(a, begin) == 0) ++begin;
    while (end > begin && matrix(a, end - 1) == 0) --end;
    const double* row = matrix.row(a).data();
    rows.push_back({begin, std::vector<double>(row + begin, row + end)});
  }
  return banded(rows, matrix.cols());
}

}  // namespace widelimit::layers
