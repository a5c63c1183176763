#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// dual_operations() and value_operations(): the formulas of nonlinearities, for readers in Python.
void bind_formulas(nanobind::module_& module);

}  // namespace widelimit::python
