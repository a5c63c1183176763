#pragma once

#include <ctime>

namespace benchmarks {

/// Seconds of processor time that work() takes, of all threads: other programs come and go.
template <typename Work>
double processor_seconds(const Work& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace benchmarks
