#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace widelimit::python {

/// A thread on which one Python thread's calls compute, so that the Python thread can watch for Ctrl-C meanwhile. It is
/// kept from call to call: making one takes longer than a small Gram matrix.
class ComputingThread {
 public:
  /// That of the calling thread; a new one in a process that was forked, where the parent's threads are not.
  static ComputingThread& of_this_thread();

  /// The calling thread waits for its task no longer, and takes a new thread for the next one. What was left is waited
  /// for when the process ends.
  static void leave();

  ComputingThread();
  ~ComputingThread();
  ComputingThread(const ComputingThread&) = delete;
  ComputingThread& operator=(const ComputingThread&) = delete;

  /// Begins a task, which must not throw; one that runs (this is a signal handler's) ends first.
  void start(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool is_ending_ = false;
  std::thread thread_;  ///< Last: it uses the others.
};

}  // namespace widelimit::python
