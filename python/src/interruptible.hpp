#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <type_traits>

namespace widelimit::python {

/// body(stop) on a thread of its own, without the interpreter's lock. Ctrl-C asks it to stop and is raised as
/// KeyboardInterrupt as soon as it has; what body throws is passed on.
template <typename Body>
std::invoke_result_t<Body, std::stop_token> run_interruptibly(const Body& body) {
  std::stop_source source;
  bool interrupted = false;
  std::future<std::invoke_result_t<Body, std::stop_token>> result;
  {
    const nanobind::gil_scoped_release unlocked;
    result = std::async(std::launch::async, body, source.get_token());
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
