#pragma once

#include <stop_token>
#include <thread>

namespace widelimit::cli {

/// While an object lives, the first SIGINT (Ctrl-C) asks the computation to stop instead of ending the
/// program; a second one ends it at once. One object at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  /// Throws Cancelled if a stop was asked for: call it between steps that cannot be stopped themselves.
  void check() const;

 private:
  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace widelimit::cli
