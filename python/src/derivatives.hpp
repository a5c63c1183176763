#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// gram_vjp, gram_diagonal_vjp; gram_jvp.
void bind_derivatives(nanobind::module_& module);

}  // namespace widelimit::python
