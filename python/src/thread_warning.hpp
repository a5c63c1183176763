#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace widelimit::python {

/// A RuntimeWarning by whichever thread computes, at once. Where warnings are errors it is printed: the work of another
/// thread does not end here.
inline void warn_from_thread(const std::string& message) {
  const nanobind::gil_scoped_acquire locked;
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
}

}  // namespace widelimit::python
