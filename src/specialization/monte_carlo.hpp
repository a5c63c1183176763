#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/tasks.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::specialization {

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
  [[nodiscard]] double mean() const { return sum_ / count_; }
  [[nodiscard]] double standard_error() const {
    return std::sqrt(std::max(square_ / count_ - mean() * mean(), 0.0) / count_);
  }

 private:
  double count_ = 0, sum_ = 0, square_ = 0;
};

/// Sums of sums_of(block, size) over the blocks that `count` draws are cut into, in order: the same for any
/// number of threads.
template <typename SumsOf>
MonteCarloSums sum_blocks(Eigen::Index count, Eigen::Index block_size, const RunControl& run,
                          const SumsOf& sums_of) {
  const Eigen::Index blocks = (count + block_size - 1) / block_size;
  std::vector<MonteCarloSums> parts(static_cast<std::size_t>(blocks));
  numerics::on_threads(run.threads, [&] {
    numerics::for_each_task(blocks, run, [&](Eigen::Index block) {
      parts[static_cast<std::size_t>(block)] =
          sums_of(block, std::min(block_size, count - block * block_size));
    });
  });
  MonteCarloSums total;
  for (const MonteCarloSums& part : parts) total.add(part);
  return total;
}

}  // namespace widelimit::specialization
