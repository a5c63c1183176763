#include "cli/output/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace widelimit::cli {
namespace {

constexpr int bar_width = 24;
constexpr std::chrono::milliseconds refresh_interval{100};
constexpr std::chrono::minutes log_interval{1};

std::string readable_rate(double rate) {
  if (rate >= 1e6) return fmt::format("{:.1f} M", rate * 1e-6);
  if (rate >= 1e3) return fmt::format("{:.1f} k", rate * 1e-3);
  return fmt::format("{:.1f} ", rate);
}

}  // namespace

std::string rate_text(double pairs_per_second) { return readable_rate(pairs_per_second) + "pairs/s"; }

std::string time_text(double seconds) {
  if (std::isinf(seconds)) return "?";
  const long long whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

ProgressBar::ProgressBar(std::string label, InLogs in_logs, Counted counted)
    : label_{std::move(label)}, visible_{isatty(STDERR_FILENO) != 0}, in_logs_{in_logs}, counted_{counted} {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

std::string ProgressBar::rate_text(const State& state) const {
  const std::string parts = state.parts.empty() ? "" : state.parts + ", ";
  return parts + (counted_ == Counted::pairs ? cli::rate_text(state.rate) + ", " : "");
}

void ProgressBar::show(Index done, Index total) {
  if (done <= 0) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
  show({done, total, rate, static_cast<double>(total - done) / rate});
}

void ProgressBar::show(const State& state) {
  const double share = std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
  if (!visible_) return log(state, share);
  const auto now = Clock::now();
  if (now - last_ < refresh_interval) return;
  last_ = now;
  const auto filled = static_cast<std::size_t>(share * bar_width);
  const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
  fmt::print(stderr, "\r\033[K{} [{}] {:3.0f} %, {}{} left", label_, bar, 100 * share, rate_text(state),
             time_text(state.seconds_left));
  std::fflush(stderr);
}

void ProgressBar::log(const State& state, double share) {
  const auto now = Clock::now();
  if (in_logs_ == InLogs::nothing || now - std::max(last_, start_) < log_interval) return;
  last_ = now;
  fmt::print(stderr, "{}: {:.1f} %, {}{} left\n", label_, 100 * share, rate_text(state),
             time_text(state.seconds_left));
}

}  // namespace widelimit::cli
