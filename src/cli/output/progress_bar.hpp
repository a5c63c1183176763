#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "widelimit/network/shape.hpp"
#include "widelimit/pace.hpp"

namespace widelimit::cli {

/// "1.2 M pairs/s"
[[nodiscard]] std::string rate_text(double pairs_per_second);

/// "2:03", "1:02:03", "3 days 4 h", "1.3 years", or "?" where it is infinite.
[[nodiscard]] std::string time_text(double seconds);

/// "0.123 s", "12.5 min", "7.5 h", "488 days", "8.17 years": 3 digits.
[[nodiscard]] std::string duration_text(double seconds);

/// No progress is shown from now on.
void silence_progress();

/// Takes a StatusLine from the terminal if there may be one.
void erase_status_line();

/// What a command tells of its progress on standard error: on a terminal one line, which is erased in the end and fits
/// its width; elsewhere, and where TERM is "dumb" or nothing, a line every 30 seconds. No escape codes are printed.
/// Calls must not overlap.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether it is time for the next text; then it is to be shown.
  [[nodiscard]] bool is_due();
  void show(std::string_view text) const;

  /// Whole lines that stay, above those that follow.
  void note(std::string_view text) const;

  /// Letters that a text may have.
  [[nodiscard]] std::size_t width() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool on_terminal_;
  Clock::time_point last_;
};

/// What is counted: pairs of inputs, or steps, whose rate says nothing.
enum class Counted { pairs, steps };

/// How far a computation is, its rate and the time left; of one that takes long, also what it computes with.
class ProgressBar {
 public:
  /// `threads`: how many compute, 0 for all that there are; said beside the label if given.
  explicit ProgressBar(const std::string& label, Counted counted = Counted::pairs,
                       std::optional<int> threads = {});

  /// `done` pairs or steps of `total`, called whenever a part of them has ended.
  void show(Index done, Index total);

  /// How far a computation is that may have begun in an earlier run.
  struct State {
    Index done;
    Index total;
    double rate;             ///< A second; 0 while it is not known.
    double seconds_left;     ///< Infinite while it is not known.
    std::string parts = {};  ///< How many of them are done, in words: "12 of 55 tiles".
  };
  void show(const State& state);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  Counted counted_;
  StatusLine line_;
  Clock::time_point start_ = Clock::now();
  Pace pace_;
  bool is_named_ = false;  ///< What it computes with.
};

/// A line of how far conjugate gradients are, which end at the relative residual `until`: called with the kernel's name
/// after every pass.
[[nodiscard]] std::function<void(const std::string& kernel, int passes, double residual)> iteration_line(
    double until);

/// "struct [######..................]  25 %, 3 of 12 tiles, 1.2 M pairs/s, 0:40 left" in at most so many letters: the
/// bar gives way first, then tiles and rate, then the end of the label.
[[nodiscard]] std::string progress_text(const std::string& label, const ProgressBar::State& state,
                                        Counted counted, std::size_t width);

}  // namespace widelimit::cli
