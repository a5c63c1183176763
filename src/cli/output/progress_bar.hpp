#pragma once

#include <chrono>
#include <string>

#include "widelimit/network/shape.hpp"

namespace widelimit::cli {

/// What is shown where stderr is no terminal.
enum class InLogs { nothing, line_a_minute };

/// What is counted: pairs of inputs, or steps, whose rate says nothing.
enum class Counted { pairs, steps };

/// "1.2 M pairs/s"
[[nodiscard]] std::string rate_text(double pairs_per_second);

/// "1:02:03", "2:03", or "?" where it is infinite.
[[nodiscard]] std::string time_text(double seconds);

/// One line on stderr that shows how far a computation is, its rate and the time left. It is erased in the end. Calls
/// must not overlap.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label, InLogs in_logs = InLogs::nothing, Counted counted = Counted::pairs);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` pairs or steps of `total`.
  void show(Index done, Index total);

  /// How far a computation is that may have begun in an earlier run.
  struct State {
    Index done;
    Index total;
    double rate;             ///< A second.
    double seconds_left;     ///< Infinite while it is not known.
    std::string parts = {};  ///< How many of them are done, in words: "12 of 55 tiles".
  };
  void show(const State& state);

 private:
  using Clock = std::chrono::steady_clock;

  void log(const State& state, double share);
  [[nodiscard]] std::string rate_text(const State& state) const;

  std::string label_;
  bool visible_;
  InLogs in_logs_;
  Counted counted_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace widelimit::cli
