#include "computing_thread.hpp"

#include <unistd.h>

#include <memory>
#include <utility>

namespace widelimit::python {
namespace {

/// One Python thread's, and the process in which it was made.
struct Owned {
  std::unique_ptr<ComputingThread> thread;
  pid_t process = 0;

  ~Owned() { forget_if_forked(); }
  /// Of another process only its object is here: joining it would wait for ever.
  void forget_if_forked() {
    if (process != getpid()) static_cast<void>(thread.release());
  }
};

}  // namespace

ComputingThread& ComputingThread::of_this_thread() {
  static thread_local Owned owned;
  owned.forget_if_forked();
  if (owned.thread == nullptr) {
    owned.thread = std::make_unique<ComputingThread>();
    owned.process = getpid();
  }
  return *owned.thread;
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
