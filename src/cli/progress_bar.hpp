#pragma once

#include <chrono>
#include <string>

#include "widelimit/network/shape.hpp"

namespace widelimit::cli {

/// One line on stderr that shows how far a computation is, its rate and the time left; nothing where stderr
/// is no terminal. The line is erased in the end. Calls must not overlap.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` pairs of `total`.
  void show(Index done, Index total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool visible_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace widelimit::cli
