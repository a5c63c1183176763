#pragma once

#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

#include "widelimit/error.hpp"
#include "widelimit/index.hpp"

namespace widelimit {

/// The numerical error of the first of some tasks that are begun in order on several threads: which one is reported
/// does not depend on who was faster.
class FirstError {
 public:
  /// Calls body(), unless an earlier task failed, and keeps its NumericalError. A later task that is already running
  /// may fail as well; its error is dropped as soon as an earlier one comes.
  template <typename Body>
  void run(Index task, const Body& body) {
    if (task > first_) return;
    try {
      body();
    } catch (const NumericalError&) {
      const std::lock_guard lock(mutex_);
      if (task >= first_) return;
      first_ = task;
      error_ = std::current_exception();
    }
  }

  /// Throws the error that was kept, if there is one. It may only be called after all tasks.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<Index> first_ = std::numeric_limits<Index>::max();
  std::exception_ptr error_;
};

}  // namespace widelimit
