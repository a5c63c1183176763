#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// The covariance SDE of shaped transformers, its exact laws, and random networks of finite width.
void bind_sde(nanobind::module_& module);

}  // namespace widelimit::python
