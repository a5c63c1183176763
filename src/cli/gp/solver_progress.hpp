#pragma once

#include <chrono>
#include <string>

namespace widelimit::cli {

/// One line on standard error that shows how far conjugate gradients are: on a terminal the last one, in a log one a
/// minute.
class SolverProgress {
 public:
  /// `residual`: the relative one at which they stop.
  SolverProgress(std::string label, double residual);
  ~SolverProgress();
  SolverProgress(const SolverProgress&) = delete;
  SolverProgress& operator=(const SolverProgress&) = delete;

  [[nodiscard]] bool is_of(const std::string& label) const { return label == label_; }
  void show(int passes, double residual);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  double wanted_;
  bool on_terminal_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace widelimit::cli
