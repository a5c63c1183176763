#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace widelimit::python {

/// The device of the innermost `with widelimit.device(...)` of this thread or task, "cpu" outside of one. With the GIL.
[[nodiscard]] std::string chosen_device();

/// What there is to choose from.
void bind_devices(nanobind::module_& module);

}  // namespace widelimit::python
