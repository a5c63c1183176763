// Sums over the windows of planes against plain loops, on whatever instruction set main() chose.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numerics/row_numbers.hpp"
#include "numerics/rows/window_rows.hpp"

using namespace widelimit::numerics;
using namespace widelimit::testing;

namespace {

/// What sums are added to.
enum class Start { bias, numbers, target };

/// Windows of one shape along the rows and the entries, over one or both of the slabs.
struct WindowCase {
  std::ptrdiff_t first, stride, taps, width, out_width;
  std::ptrdiff_t slab_taps = 2;
  std::ptrdiff_t guard = 0;
  Start start = Start::bias;
};

/// Two planes of two slabs of rows, by plain loops.
template <typename Scalar>
void check_windows(const WindowCase& wanted) {
  constexpr std::ptrdiff_t slabs = 2, rows = 5, out_rows = 4, margin = 16, gap = 3;
  constexpr double scale = 0.5, bias = 0.25;
  const auto [first, stride, taps, width, out_width, slab_taps, guard, start] = wanted;
  const std::ptrdiff_t row_step = width + gap, plane = slabs * rows * row_step;
  auto source = normal_numbers<Scalar>(static_cast<std::size_t>(2 * plane + 2 * margin), 7);
  const auto in_row = [&](std::size_t i) {
    const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(i) - margin;
    return place >= 0 && place < 2 * plane && place % row_step < wanted.width;
  };
  for (std::size_t i = 0; guard > 0 && i < source.size(); ++i)
    if (!in_row(i)) source[i] = 0;
  // Whole vectors where something is added to the target.
  const std::ptrdiff_t out_step =
      start == Start::target ? (out_width + margin - 1) / margin * margin : out_width;
  const std::ptrdiff_t out_slabs = 3 - slab_taps, out_slab = out_rows * out_step,
                       out_plane = out_slabs * out_slab;
  const PlaneWindows windows{.first = {0, first, first},
                             .stride = {1, stride, stride},
                             .taps = {slab_taps, taps, taps},
                             .source_extent = {slabs, rows, width},
                             .target_extent = {out_slabs, out_rows, out_width},
                             .source_step = {rows * row_step, row_step},
                             .target_step = {out_slab, out_step},
                             .source_guard = guard,
                             .scale = scale,
                             .bias = bias};
  const auto size = static_cast<std::size_t>(2 * out_plane);
  const auto before = normal_numbers<Scalar>(size + static_cast<std::size_t>(margin), 8);
  std::vector<Scalar> target = before;
  if (start != Start::target)
    std::fill(target.begin(), target.end(), std::numeric_limits<Scalar>::quiet_NaN());
  const Scalar* starts = start == Start::target    ? target.data()
                         : start == Start::numbers ? before.data()
                                                   : nullptr;
  window_sums<Scalar>(windows, {2, plane, out_plane}, source.data() + margin, starts, target.data());
  const auto entry = [&](std::ptrdiff_t n, std::ptrdiff_t a, std::ptrdiff_t b, std::ptrdiff_t c) {
    if (a < 0 || b < 0 || c < 0 || a >= slabs || b >= rows || c >= wanted.width) return 0.0;
    return static_cast<double>(
        source[static_cast<std::size_t>(margin + n * plane + (a * rows + b) * row_step + c)]);
  };
  for (std::size_t i = 0; i < size; ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    const std::ptrdiff_t n = place / out_plane, x = place / out_slab % out_slabs,
                         y = place / out_step % out_rows, z = place % out_step;
    if (z >= out_width) continue;
    double expected = start == Start::bias ? bias : static_cast<double>(before[i]);
    for (std::ptrdiff_t a = 0; a < slab_taps; ++a)
      for (std::ptrdiff_t b = 0; b < taps; ++b)
        for (std::ptrdiff_t c = 0; c < taps; ++c)
          expected += scale * entry(n, x + a, first + stride * y + b, first + stride * z + c);
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(target[i]) - expected) <= 60 * epsilon<Scalar>);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("rows: windows of any stride and place agree with plain sums", Scalar, float, double) {
  for (const std::ptrdiff_t stride : {1, 2, 3})
    for (const std::ptrdiff_t taps : {1, 2, 3, 5})
      for (const std::ptrdiff_t first : {-2, -1, 0, 1})
        for (const std::ptrdiff_t width : {1, 6, 17, 40, 70})
          for (const std::ptrdiff_t slab_taps : {1, 2})
            for (const Start start : {Start::bias, Start::numbers, Start::target}) {
              CAPTURE(stride);
              CAPTURE(taps);
              CAPTURE(first);
              CAPTURE(width);
              CAPTURE(slab_taps);
              CAPTURE(start);
              WindowCase wanted{first,     stride, taps, width, (width + stride - 1) / stride + 1,
                                slab_taps, 0,      start};
              check_windows<Scalar>(wanted);
              // Not beyond the zeros around a row.
              wanted.guard = 2;
              check_windows<Scalar>(wanted);
              // Wholly inside, if there is room.
              wanted.guard = 0;
              wanted.out_width = (width - taps - first) / stride + 1;
              if (first >= 0 && wanted.out_width > 0 && width >= taps + first) check_windows<Scalar>(wanted);
            }
}

TEST_CASE_TEMPLATE("rows: both kernels in one pass have the bits of one after the other", Scalar, float,
                   double) {
  constexpr std::ptrdiff_t rows = 9, out_rows = 5, guard = 1, margin = 32;
  for (const std::ptrdiff_t stride : {1, 2, 3})
    for (const std::ptrdiff_t taps : {1, 2, 3, 5})
      for (const std::ptrdiff_t width : {7, 34, 40}) {
        CAPTURE(stride);
        CAPTURE(taps);
        CAPTURE(width);
        const std::ptrdiff_t step = width + guard, plane = rows * step;
        const std::ptrdiff_t out_width = (width + stride - 1) / stride, out_plane = out_rows * out_width;
        const auto count = static_cast<std::size_t>(2 * plane + 2 * margin);
        const auto nngp = normal_numbers<Scalar>(count, 14), ntk = normal_numbers<Scalar>(count, 15);
        const PlaneWindows windows{.first = {0, -1, -1},
                                   .stride = {1, stride, stride},
                                   .taps = {1, taps, taps},
                                   .source_extent = {1, rows, width},
                                   .target_extent = {1, out_rows, out_width},
                                   .source_step = {0, step},
                                   .target_step = {0, out_width},
                                   .source_guard = width,
                                   .scale = 0.3,
                                   .bias = 0.7};
        const PlaneSteps steps{2, plane, out_plane};
        const auto room = static_cast<std::size_t>(2 * out_plane + margin);
        std::vector<Scalar> one(room), other(room), both_nngp(room), both_ntk(room);
        window_sums<Scalar>(windows, steps, nngp.data() + margin, nullptr, one.data());
        window_sums<Scalar>(windows, steps, ntk.data() + margin, one.data(), other.data());
        convolve_windows<Scalar>(windows, steps, {nngp.data() + margin, ntk.data() + margin},
                                 {both_nngp.data(), both_ntk.data()});
        CHECK(std::equal(one.begin(), one.begin() + 2 * out_plane, both_nngp.begin()));
        CHECK(std::equal(other.begin(), other.begin() + 2 * out_plane, both_ntk.begin()));
      }
}

TEST_CASE_TEMPLATE("rows: sums of rows leave a gap out", Scalar, float, double) {
  constexpr std::ptrdiff_t rows = 7, out_rows = 3, out_step = 48, padding = 16;
  for (const std::ptrdiff_t width : {5, 32, 40})
    for (const std::ptrdiff_t gap_at : {1, 4, 16, 30})
      for (const std::ptrdiff_t gap : {1, 2})
        for (const std::ptrdiff_t taps : {1, 2, 4}) {
          if (gap_at >= width) continue;
          CAPTURE(width);
          CAPTURE(gap_at);
          CAPTURE(gap);
          CAPTURE(taps);
          const std::ptrdiff_t step = width + gap;
          const auto source = normal_numbers<Scalar>(static_cast<std::size_t>(rows * step + padding), 13);
          std::vector<Scalar> target(out_rows * out_step);
          const PlaneWindows windows{.first = {0, 0, 0},
                                     .stride = {1, 1, 1},
                                     .taps = {1, taps, 1},
                                     .source_extent = {1, rows, width},
                                     .target_extent = {1, out_rows, width},
                                     .source_step = {0, step},
                                     .target_step = {0, out_step},
                                     .gap_at = gap_at,
                                     .gap_size = gap};
          window_sums<Scalar>(windows, {1, 0, 0}, source.data(), nullptr, target.data());
          for (std::ptrdiff_t y = 0; y < out_rows; ++y)
            for (std::ptrdiff_t x = 0; x < width; ++x) {
              double expected = 0;
              for (std::ptrdiff_t t = 0; t < taps; ++t)
                expected += static_cast<double>(
                    source[static_cast<std::size_t>((y + t) * step + x + (x < gap_at ? 0 : gap))]);
              const Scalar sum = target[static_cast<std::size_t>(y * out_step + x)];
              CHECK(std::abs(static_cast<double>(sum) - expected) <= 40 * epsilon<Scalar>);
            }
        }
}
