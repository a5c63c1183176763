#include "cli/progress_bar.hpp"

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

std::string readable_rate(double rate) {
  if (rate >= 1e6) return fmt::format("{:.1f} M", rate * 1e-6);
  if (rate >= 1e3) return fmt::format("{:.1f} k", rate * 1e-3);
  return fmt::format("{:.1f} ", rate);
}

std::string readable_time(double seconds) {
  const long long whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ProgressBar::ProgressBar(std::string label)
    : label_{std::move(label)}, visible_{isatty(STDERR_FILENO) != 0} {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(Index done, Index total) {
  const auto now = Clock::now();
  if (!visible_ || done <= 0 || now - last_ < refresh_interval) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(share * bar_width);
  const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
  fmt::print(stderr, "\r\033[K{} [{}] {:3.0f} %  {}pairs/s  {} left", label_, bar, 100 * share,
             readable_rate(rate), readable_time(static_cast<double>(total - done) / rate));
  std::fflush(stderr);
}

}  // namespace widelimit::cli
