#include "cli/program/interrupt.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "cli/output/progress_bar.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/temporary_path.hpp"

namespace widelimit::cli {
namespace {

constexpr std::array<int, 3> stop_signals{SIGINT, SIGTERM, SIGHUP};
constexpr std::chrono::milliseconds time_to_stop{500};

// A signal handler may do next to nothing. It writes the signal's number to a pipe; a thread that waits there
// does the rest.
std::array<int, 2> pipe_ends{-1, -1};
constexpr char quit_byte = 0;

std::atomic<int> last_signal = SIGINT;

extern "C" void on_stop_signal(int signal) {
  const int saved_errno = errno;
  const auto byte = static_cast<char>(signal);
  static_cast<void>(!write(pipe_ends[1], &byte, 1));
  errno = saved_errno;
}

char next_byte() {
  char byte = quit_byte;
  ssize_t count = 0;
  do count = read(pipe_ends[0], &byte, 1);
  while (count < 0 && errno == EINTR);
  return count == 1 ? byte : quit_byte;
}

/// False where none came in time.
bool comes_within(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd pipe{pipe_ends[0], POLLIN, 0};
    const int ready = poll(&pipe, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Libraries that factorise a matrix cannot be asked to stop.
[[noreturn]] void end_program() {
  files::remove_temporary_paths();
  erase_status_line();
  std::fputs("widelimit: interrupted\n", stderr);
  _exit(Interrupt::exit_code());
}

void watch(std::stop_source source) {
  const char first = next_byte();
  if (first == quit_byte) return;
  last_signal = first;
  source.request_stop();
  if (!comes_within(time_to_stop)) end_program();
  const char second = next_byte();
  if (second == quit_byte) return;
  last_signal = second;
  end_program();
}

}  // namespace

Interrupt::Interrupt() {
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe for interrupts");
  try {
    watcher_ = std::thread(watch, source_);
  } catch (const std::system_error& error) {
    throw Error(fmt::format("out of memory or threads: cannot start one that waits for signals: {}",
                            error.code().message()));
  }
  for (const int signal : stop_signals) {
    const auto before = std::signal(signal, on_stop_signal);
    if (signal == SIGHUP && before == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

Interrupt::~Interrupt() {
  for (const int signal : stop_signals) std::signal(signal, SIG_DFL);
  static_cast<void>(!write(pipe_ends[1], &quit_byte, 1));
  watcher_.join();
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

void Interrupt::check() const {
  if (source_.stop_requested()) throw Cancelled("interrupted");
}

int Interrupt::exit_code() {
  constexpr int ended_by_signal = 128;
  return ended_by_signal + last_signal;
}

}  // namespace widelimit::cli
