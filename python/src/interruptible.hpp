#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "computing_thread.hpp"

namespace widelimit::python {

/// Runs a task on another thread, without the interpreter's lock, until it has ended. Ctrl-C asks `source` to stop;
/// then the task is waited for at most so long, or for ever (`patience` < 0). False if it has not ended.
///
/// Errors  KeyboardInterrupt is pending where it was pressed (PyErr_Occurred()).
template <typename Result>
bool run_watched(const std::shared_ptr<std::packaged_task<Result()>>& task, const std::future<Result>& result,
                 std::stop_source& source, std::chrono::milliseconds patience) {
  const nanobind::gil_scoped_release unlocked;
  // Shared with the thread, which may still hold it for a moment when the result is there.
  ComputingThread::of_this_thread().start([task] { (*task)(); });
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    {
      const nanobind::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() == 0) continue;
      source.request_stop();
    }
    // Callbacks need the lock; the pending interrupt must not reach them.
    if (patience.count() >= 0) return result.wait_for(patience) == std::future_status::ready;
    result.wait();
    return true;
  }
  return true;
}

/// body(stop), which ends soon after a stop is asked for: at Ctrl-C,
/// KeyboardInterrupt then. What it throws is passed on.
template <typename Body>
std::invoke_result_t<Body, std::stop_token> run_interruptibly(const Body& body) {
  using Result = std::invoke_result_t<Body, std::stop_token>;
  std::stop_source source;
  const auto task =
      std::make_shared<std::packaged_task<Result()>>([&body, &source] { return body(source.get_token()); });
  std::future<Result> result = task->get_future();
  static_cast<void>(run_watched(task, result, source, std::chrono::milliseconds(-1)));
  if (PyErr_Occurred() != nullptr) throw nanobind::python_error();
  return result.get();
}

/// The same where it may not end soon, as within a factorization: half a second after Ctrl-C it is left to end by
/// itself, and its result is dropped. So body owns what it uses, but for what the Python objects `used` own: those then
/// stay for good.
template <typename Body>
std::invoke_result_t<Body, std::stop_token> run_or_leave(Body body, std::vector<nanobind::object> used = {}) {
  using Result = std::invoke_result_t<Body, std::stop_token>;
  std::stop_source source;
  const auto task = std::make_shared<std::packaged_task<Result()>>(
      [body = std::move(body), stop = source.get_token()] { return body(stop); });
  std::future<Result> result = task->get_future();
  if (!run_watched(task, result, source, std::chrono::milliseconds(500))) {
    ComputingThread::leave();
    for (nanobind::object& object : used) static_cast<void>(object.release());
  }
  if (PyErr_Occurred() != nullptr) throw nanobind::python_error();
  return result.get();
}

}  // namespace widelimit::python
