#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "widelimit/run_control.hpp"

namespace widelimit::python {

/// What a caller wants to be told: (steps done, steps in all).
using ProgressFunction = std::optional<std::function<void(std::ptrdiff_t, std::ptrdiff_t)>>;

/// The same for threads without the interpreter's lock; empty where nothing is to be told.
inline std::function<void(std::ptrdiff_t, std::ptrdiff_t)> locked(const ProgressFunction& progress) {
  if (!progress) return {};
  return [call = *progress](std::ptrdiff_t done, std::ptrdiff_t total) {
    const nanobind::gil_scoped_acquire lock;
    call(done, total);
  };
}

inline RunControl run_control_of(int threads, const ProgressFunction& progress, std::stop_token stop) {
  return {.threads = threads, .stop = std::move(stop), .progress = locked(progress)};
}

}  // namespace widelimit::python
