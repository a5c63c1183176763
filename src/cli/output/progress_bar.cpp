#include "cli/output/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "cli/output/terminal_columns.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/program/machine_facts.hpp"
#include "widelimit/numerics/cores.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

bool is_silent = false;

std::string readable_rate(double rate) {
  if (rate >= 1e6) return fmt::format("{:.1f} M ", rate * 1e-6);
  if (rate >= 1e3) return fmt::format("{:.1f} k ", rate * 1e-3);
  return fmt::format("{:.1f} ", rate);
}

std::string first_letters(std::string text, std::size_t count) {
  while (letter_count(text) > count) text.pop_back();
  return text;
}

/// Whether standard error is a terminal that can go back in a line.
bool has_status_line() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

std::size_t terminal_width() {
  constexpr std::size_t usual = 79, least = 20;
  // The last column would move the cursor to the next line.
  return std::max(terminal_columns(STDERR_FILENO).value_or(usual + 1), least + 1) - 1;
}

}  // namespace

std::string rate_text(double pairs_per_second) { return readable_rate(pairs_per_second) + "pairs/s"; }

std::string time_text(double seconds) {
  constexpr long long hour = 3600, day = 24 * hour;
  constexpr double year = 365.25 * day;
  if (std::isinf(seconds)) return "?";
  if (seconds >= 2 * year) return fmt::format("{:.3g} years", seconds / year);
  const long long whole = std::llround(seconds);
  if (whole >= 2 * day) return fmt::format("{} days {} h", whole / day, whole / hour % 24);
  if (whole >= hour) return fmt::format("{}:{:02}:{:02}", whole / hour, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string duration_text(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour, year = 365.25 * day;
  if (seconds < 5 * minute) return fmt::format("{:.3g} s", seconds);
  if (seconds < 3 * hour) return fmt::format("{:.3g} min", seconds / minute);
  if (seconds < 3 * day) return fmt::format("{:.3g} h", seconds / hour);
  return seconds < 2 * year ? fmt::format("{:.3g} days", seconds / day)
                            : fmt::format("{:.3g} years", seconds / year);
}

void silence_progress() { is_silent = true; }

void erase_status_line() {
  // Spaces do it on every terminal.
  if (has_status_line()) fmt::print(stderr, "\r{}\r", std::string(terminal_width(), ' '));
}

StatusLine::StatusLine() : on_terminal_{has_status_line()} {
  // A terminal shows the first text at once.
  if (!on_terminal_) last_ = Clock::now();
}

StatusLine::~StatusLine() {
  if (!is_silent) erase_status_line();
}

bool StatusLine::is_due() {
  constexpr std::chrono::milliseconds for_people{100};
  constexpr std::chrono::seconds in_logs{30};
  const auto now = Clock::now();
  if (is_silent || now - last_ < (on_terminal_ ? Clock::duration(for_people) : Clock::duration(in_logs)))
    return false;
  last_ = now;
  return true;
}

std::size_t StatusLine::width() const {
  constexpr std::size_t of_logs = 200;
  return on_terminal_ ? terminal_width() : of_logs;
}

void StatusLine::show(std::string_view text) const {
  const std::string cut = first_letters(visible_text(text), width());
  erase_status_line();
  fmt::print(stderr, "{}{}", cut, on_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void StatusLine::note(std::string_view text) const {
  erase_status_line();
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

namespace {

int thread_count(int threads) { return threads > 0 ? threads : numerics::own_cores(); }

std::string threads_text(int threads) {
  const int count = thread_count(threads);
  return fmt::format(", {} thread{}", count, count == 1 ? "" : "s");
}

}  // namespace

ProgressBar::ProgressBar(const std::string& label, Counted counted, std::optional<int> threads)
    : label_{threads ? label + threads_text(*threads) : label},
      counted_{counted},
      pace_{thread_count(threads.value_or(1))} {}

void ProgressBar::show(Index done, Index total) {
  if (done <= 0) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  pace_.take(static_cast<double>(done), seconds);
  const double rate = pace_.rate().value_or(0), left = static_cast<double>(total - done);
  show({done, total, rate, rate > 0 ? left / rate : std::numeric_limits<double>::infinity()});
}

void ProgressBar::show(const State& state) {
  if (!line_.is_due()) return;
  // A log's first line comes as late.
  constexpr std::chrono::seconds of_long_runs{30};
  if (!is_named_ && Clock::now() - start_ >= of_long_runs) {
    line_.note(arithmetic_text());
    is_named_ = true;
  }
  line_.show(progress_text(label_, state, counted_, line_.width()));
}

std::function<void(const std::string& kernel, int passes, double residual)> iteration_line(double until) {
  struct Shown {
    std::string kernel;
    std::unique_ptr<StatusLine> line;
  };
  return [until, shown = std::make_shared<Shown>()](const std::string& kernel, int passes, double residual) {
    if (!shown->line || shown->kernel != kernel) shown->line = std::make_unique<StatusLine>();
    shown->kernel = kernel;
    if (shown->line->is_due())
      shown->line->show(fmt::format("{}: pass {}, relative residual {:.1e} (until {:.1e})", kernel, passes,
                                    residual, until));
  };
}

std::string progress_text(const std::string& label, const ProgressBar::State& state, Counted counted,
                          std::size_t width) {
  constexpr std::size_t widest_bar = 24, smallest_bar = 6;
  const double share = std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
  const std::string percent = fmt::format("{:3.0f} %, ", 100 * share),
                    left = time_text(state.seconds_left) + " left";
  std::string details = state.parts.empty() ? "" : state.parts + ", ";
  if (counted == Counted::pairs && state.rate > 0) details += rate_text(state.rate) + ", ";
  const auto letters = [&] {
    return letter_count(label) + 1 + percent.size() + details.size() + left.size();
  };
  std::string bar;
  if (letters() + smallest_bar + 3 <= width) {
    const std::size_t cells = std::min(widest_bar, width - letters() - 3);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(cells));
    bar = "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "] ";
  }
  if (letters() > width) details.clear();
  const std::size_t others = letters() - letter_count(label);
  return first_letters(label, width > others ? width - others : 0) + " " + bar + percent + details + left;
}

}  // namespace widelimit::cli
