#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// layer_kinds(): the table of built-in layers.
void bind_kinds(nanobind::module_& module);

}  // namespace widelimit::python
