#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Model, Preprocessing, and the search for numbers of a network.
void bind_models(nanobind::module_& module);

}  // namespace widelimit::python
