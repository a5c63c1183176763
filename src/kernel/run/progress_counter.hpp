#pragma once

#include <atomic>
#include <mutex>

#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// Counts pairs and tells the caller, one thread at a time.
class ProgressCounter {
 public:
  ProgressCounter(const GramOptions& options, Index total) : options_{options}, total_{total} {}

  void add(Index pairs) {
    const Index done = done_ += pairs;
    if (!options_.progress) return;
    const std::scoped_lock lock(mutex_);
    // A thread that was overtaken on its way here must not count backwards.
    if (done <= reported_) return;
    reported_ = done;
    options_.progress({done, total_});
  }

  [[nodiscard]] Index done() const { return done_; }
  [[nodiscard]] Index total() const { return total_; }

 private:
  const GramOptions& options_;
  Index total_;
  std::atomic<Index> done_ = 0;
  std::mutex mutex_;
  Index reported_ = 0;
};

}  // namespace widelimit
