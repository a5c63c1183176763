#include "cli/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

// A signal handler may do next to nothing. It writes a byte to a pipe; a thread that waits there does the
// rest.
std::array<int, 2> pipe_ends{-1, -1};

constexpr char stop_byte = 's';
constexpr char quit_byte = 'q';

extern "C" void on_interrupt(int) {
  const int saved_errno = errno;
  static_cast<void>(!write(pipe_ends[1], &stop_byte, 1));
  std::signal(SIGINT, SIG_DFL);
  errno = saved_errno;
}

}  // namespace

Interrupt::Interrupt() {
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe for interrupts");
  watcher_ = std::thread([source = source_]() mutable {
    char byte = 0;
    ssize_t count = 0;
    do count = read(pipe_ends[0], &byte, 1);
    while (count < 0 && errno == EINTR);
    if (count == 1 && byte == stop_byte) source.request_stop();
  });
  std::signal(SIGINT, on_interrupt);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  static_cast<void>(!write(pipe_ends[1], &quit_byte, 1));
  watcher_.join();
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

void Interrupt::check() const {
  if (source_.stop_requested()) throw Cancelled("interrupted");
}

}  // namespace widelimit::cli
