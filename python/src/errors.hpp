#pragma once

#include <nanobind/nanobind.h>

namespace widelimit::python {

/// Adds the library's errors as Python exceptions with the same text: Error (a RuntimeError); below it ArgumentError,
/// NetworkError and DataError, each also a ValueError; NumericalError, also an ArithmeticError; Cancelled.
void bind_errors(nanobind::module_& module);

}  // namespace widelimit::python
