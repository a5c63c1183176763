#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Regression and GradientFlow.
void bind_inference(nanobind::module_& module);

}  // namespace widelimit::python
