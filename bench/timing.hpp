#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace benchmarks {

template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The best of three, because other programs come and go.
template <typename Work>
double best_seconds_of(const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 3; ++turn) best = std::min(best, seconds_of(work));
  return best;
}

}  // namespace benchmarks
