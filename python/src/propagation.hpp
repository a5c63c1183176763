#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Signal propagation in random transformers: closed forms, phase diagrams, critical lines and simulations.
void bind_propagation(nanobind::module_& module);

/// The same through a block of any layers, and in activations of a model.
void bind_repeated_blocks(nanobind::module_& module);

}  // namespace widelimit::python
