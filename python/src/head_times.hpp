#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Times at which heads specialise, and SGD on images, for widelimit.heads.
void bind_head_times(nanobind::module_& module);

}  // namespace widelimit::python
