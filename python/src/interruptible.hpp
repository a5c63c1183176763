#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <type_traits>

#include "computing_thread.hpp"

namespace widelimit::python {

/// body(stop) on another thread, without the interpreter's lock. Ctrl-C asks it to stop and is raised as
/// KeyboardInterrupt as soon as it has; what body throws is passed on.
template <typename Body>
std::invoke_result_t<Body, std::stop_token> run_interruptibly(const Body& body) {
  std::stop_source source;
  bool interrupted = false;
  using Result = std::invoke_result_t<Body, std::stop_token>;
  // Shared with the thread, which may still hold it for a moment when the result is there.
  const auto task =
      std::make_shared<std::packaged_task<Result()>>([&body, &source] { return body(source.get_token()); });
  std::future<Result> result = task->get_future();
  {
    const nanobind::gil_scoped_release unlocked;
    ComputingThread::of_this_thread().start([task] { (*task)(); });
    while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const nanobind::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() == 0) continue;
      interrupted = true;
      source.request_stop();
      break;
    }
    if (interrupted) {
      // Callbacks need the lock; the pending interrupt must not reach them.
      result.wait();
    }
  }
  if (interrupted) throw nanobind::python_error();
  return result.get();
}

}  // namespace widelimit::python
