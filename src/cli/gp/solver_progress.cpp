#include "cli/gp/solver_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace widelimit::cli {

SolverProgress::SolverProgress(std::string label, double residual)
    : label_{std::move(label)}, wanted_{residual}, on_terminal_{isatty(STDERR_FILENO) != 0} {}

SolverProgress::~SolverProgress() {
  if (on_terminal_) std::fputs("\r\033[K", stderr);
}

void SolverProgress::show(int passes, double residual) {
  constexpr std::chrono::milliseconds for_people{100};
  constexpr std::chrono::minutes in_logs{1};
  const auto now = Clock::now();
  if (now - last_ < (on_terminal_ ? Clock::duration(for_people) : Clock::duration(in_logs))) return;
  last_ = now;
  fmt::print(stderr, "{}{}: pass {}, relative residual {:.1e} (until {:.1e}){}",
             on_terminal_ ? "\r\033[K" : "", label_, passes, residual, wanted_, on_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace widelimit::cli
