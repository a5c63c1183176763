#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Networks of finite width, their kernels, and the check of limits against them.
void bind_finite(nanobind::module_& module);

}  // namespace widelimit::python
