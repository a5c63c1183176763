#include "widelimit/numerics/number_range.hpp"

#include <Eigen/Core>
#include <algorithm>
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
  // So many numbers are compared and added side by side: Eigen makes vectors of them.
  constexpr int lanes = 16;
  using Lanes = Eigen::Array<Scalar, lanes, 1>;
  Lanes smallest = Lanes::Constant(std::numeric_limits<Scalar>::infinity()), largest = -smallest;
  Eigen::Array<double, lanes, 1> sum = Eigen::Array<double, lanes, 1>::Zero();
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Eigen::Map<const Lanes> next(numbers + i);
    smallest = smallest.min(next);
    largest = largest.max(next);
    sum += next.template cast<double>();
  }
  BlockRange range{static_cast<double>(smallest.minCoeff()), static_cast<double>(largest.maxCoeff()),
                   sum.sum()};
  for (; i < count; ++i) {
    const auto number = static_cast<double>(numbers[i]);
    range.smallest = std::min(range.smallest, number);
    range.largest = std::max(range.largest, number);
    range.sum += number;
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
