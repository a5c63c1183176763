#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Covariances between positions, for networks without a readout.
void bind_positions(nanobind::module_& module);

}  // namespace widelimit::python
