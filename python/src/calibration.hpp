#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

void bind_calibration(nanobind::module_& module);

}  // namespace widelimit::python
