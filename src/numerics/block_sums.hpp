#pragma once

#include <tbb/task_group.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"

/// Sums over blocks of samples, taken in order: the same for any number of threads.
namespace widelimit::numerics {

using Eigen::Index;

/// Sums of a sample, for its mean and the standard error of that.
class MonteCarloSums {
 public:
  void add(double value) {
    count_ += 1;
    sum_ += value;
    square_ += value * value;
  }
  void add(const MonteCarloSums& other) {
    count_ += other.count_;
    sum_ += other.sum_;
    square_ += other.square_;
  }
  [[nodiscard]] double count() const { return count_; }
  [[nodiscard]] double mean() const { return sum_ / count_; }
  // The difference of two nearly equal numbers can come out slightly negative.
  [[nodiscard]] double variance() const { return std::max(square_ / count_ - mean() * mean(), 0.0); }
  [[nodiscard]] double standard_error() const { return std::sqrt(variance() / count_); }

 private:
  double count_ = 0, sum_ = 0, square_ = 0;
};

/// part_of(block, size) of the blocks that `count` things are cut into, in order.
template <typename PartOf>
auto parts_of_blocks(Index count, Index block_size, const RunControl& run, const PartOf& part_of) {
  const Index blocks = (count + block_size - 1) / block_size;
  std::vector<std::invoke_result_t<PartOf, Index, Index>> parts(static_cast<std::size_t>(blocks));
  for_each_task(blocks, run, [&](Index block) {
    parts[static_cast<std::size_t>(block)] = part_of(block, std::min(block_size, count - block * block_size));
  });
  // If a loop around this one is stopped, oneTBB ends this one without an exception, and parts are missing.
  if (has_threads() && tbb::is_current_task_group_canceling()) throw Cancelled("stopped on request");
  return parts;
}

/// The sums of all blocks, added up in the order of the blocks, so that the result does not depend on threads.
template <typename SumsOf>
MonteCarloSums sum_blocks(Index count, Index block_size, const RunControl& run, const SumsOf& sums_of) {
  MonteCarloSums total;
  on_threads(run.threads, [&] {
    for (const MonteCarloSums& part : parts_of_blocks(count, block_size, run, sums_of)) total.add(part);
  });
  return total;
}

}  // namespace widelimit::numerics
