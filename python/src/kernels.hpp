#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "widelimit/kernel/gram.hpp"

namespace widelimit::python {

/// "nngp", "ntk", or "both", which the Python half has checked.
[[nodiscard]] Kernels kernels_named(const std::string& name);

/// Gram matrices and plans, for float32 and float64.
void bind_kernels(nanobind::module_& module);

}  // namespace widelimit::python
