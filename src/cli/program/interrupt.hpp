#pragma once

#include <stop_token>
#include <thread>

namespace widelimit::cli {

/// While an object lives, SIGINT (Ctrl-C), SIGTERM and SIGHUP (unless it was ignored: nohup) ask the
/// computation to stop instead of ending the program at once. What does not stop within half a second, and
/// whatever runs when a second signal comes, is ended with the process; temporary files are removed. One
/// object at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  /// Throws Cancelled if a stop was asked for: call it between steps that cannot be stopped themselves.
  void check() const;

  /// The program's exit code for the last signal, 128 + its number; that of SIGINT if there was none.
  [[nodiscard]] static int exit_code();

 private:
  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace widelimit::cli
