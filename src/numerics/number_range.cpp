#include "widelimit/numerics/number_range.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

/// What a block of numbers adds: blocks, and the lanes within them, do not depend on threads.
struct BlockRange {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

constexpr std::size_t block_size = std::size_t{1} << 16;

template <typename Scalar>
BlockRange range_of_block(const Scalar* numbers, std::size_t count) {
  // So many numbers are compared and added side by side, which the compiler puts into vectors.
  constexpr std::size_t lanes = 16;
  std::array<Scalar, lanes> smallest, largest;
  std::array<double, lanes> sum{};
  smallest.fill(std::numeric_limits<Scalar>::infinity());
  largest.fill(-std::numeric_limits<Scalar>::infinity());
  const auto take = [&](std::size_t lane, Scalar number) {
    smallest[lane] = number < smallest[lane] ? number : smallest[lane];
    largest[lane] = number > largest[lane] ? number : largest[lane];
    sum[lane] += static_cast<double>(number);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) take(lane, numbers[i + lane]);
  for (; i < count; ++i) take(i % lanes, numbers[i]);
  BlockRange range;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    range.smallest = std::min(range.smallest, static_cast<double>(smallest[lane]));
    range.largest = std::max(range.largest, static_cast<double>(largest[lane]));
    range.sum += sum[lane];
  }
  return range;
}

template <typename Scalar>
NumberRange range_of(const Scalar* numbers, std::size_t count, int threads) {
  if (count == 0) throw ArgumentError("number_range: expected at least one number, got none");
  const std::size_t blocks = (count + block_size - 1) / block_size;
  std::vector<BlockRange> ranges(blocks);
  on_threads(threads, [&] {
    for_each_task(static_cast<std::ptrdiff_t>(blocks), {}, [&](std::ptrdiff_t block) {
      const std::size_t begin = static_cast<std::size_t>(block) * block_size;
      ranges[static_cast<std::size_t>(block)] =
          range_of_block(numbers + begin, std::min(block_size, count - begin));
    });
  });
  BlockRange all;
  for (const BlockRange& range : ranges) {
    all.smallest = std::min(all.smallest, range.smallest);
    all.largest = std::max(all.largest, range.largest);
    all.sum += range.sum;
  }
  return {all.smallest, all.sum / static_cast<double>(count), all.largest};
}

}  // namespace

NumberRange number_range(const float* numbers, std::size_t count, int threads) {
  return range_of(numbers, count, threads);
}

NumberRange number_range(const double* numbers, std::size_t count, int threads) {
  return range_of(numbers, count, threads);
}

}  // namespace widelimit::numerics
