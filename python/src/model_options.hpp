#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// The options of a model, which arguments of Model.fit set by the table of fitting, and what docstrings say of them.
void bind_model_options(nanobind::module_& module);

}  // namespace widelimit::python
