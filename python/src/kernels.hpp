#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Gram matrices and plans, for float32 and float64.
void bind_kernels(nanobind::module_& module);

}  // namespace widelimit::python
