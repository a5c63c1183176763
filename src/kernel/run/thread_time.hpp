#pragma once

#include <chrono>
#include <ctime>

#include "widelimit/kernel/explain.hpp"

namespace widelimit {

/// Time on the clock and processor time of the thread that calls.
class ThreadTime {
 public:
  [[nodiscard]] Cost passed() const { return {clock() - clock_, processor() - processor_}; }

 private:
  static double clock() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static double processor() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double clock_ = clock();
  double processor_ = processor();
};

}  // namespace widelimit
