#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Specialisation of attention heads: priors, losses, flows, SGD, Bayes risks and Hessians.
void bind_heads(nanobind::module_& module);

}  // namespace widelimit::python
