#include "computing_thread.hpp"

#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

namespace widelimit::python {
namespace {

/// A thread, and the process in which it was made.
class OwnedThread {
 public:
  OwnedThread() = default;
  OwnedThread(OwnedThread&& other) noexcept : thread_{std::move(other.thread_)}, process_{other.process_} {}
  OwnedThread& operator=(OwnedThread&&) = delete;
  ~OwnedThread() { forget_if_forked(); }

  ComputingThread& get() {
    forget_if_forked();
    if (thread_ == nullptr) {
      thread_ = std::make_unique<ComputingThread>();
      process_ = getpid();
    }
    return *thread_;
  }

 private:
  /// Of another process only its object is here: joining it would wait for ever.
  void forget_if_forked() {
    if (process_ != getpid()) static_cast<void>(thread_.release());
  }

  std::unique_ptr<ComputingThread> thread_;
  pid_t process_ = 0;
};

OwnedThread& own_thread() {
  static thread_local OwnedThread owned;
  return owned;
}

/// Of all Python threads; joined when the process ends.
struct LeftThreads {
  std::mutex mutex;
  std::vector<OwnedThread> threads;
};

LeftThreads& left_threads() {
  static LeftThreads left;
  return left;
}

}  // namespace

ComputingThread& ComputingThread::of_this_thread() { return own_thread().get(); }

void ComputingThread::leave() {
  LeftThreads& left = left_threads();
  const std::scoped_lock lock(left.mutex);
  left.threads.push_back(std::move(own_thread()));
}

ComputingThread::ComputingThread() : thread_{[this] { work(); }} {}

ComputingThread::~ComputingThread() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ComputingThread::start(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_one();
}

void ComputingThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || task_ != nullptr; });
    if (is_ending_) return;
    const std::function<void()> task = std::exchange(task_, nullptr);
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace widelimit::python
