#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Layer, Network, and the functions that make layers.
void bind_networks(nanobind::module_& module);

}  // namespace widelimit::python
