#pragma once

#include <nanobind/nanobind.h>

#include <variant>
#include <vector>

#include "arrays.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::python {

/// Inputs with the NumPy arrays that they refer to.
template <typename Scalar>
struct Batch {
  std::variant<Array<Scalar>, std::vector<Array<Scalar>>>
      arrays;  ///< [n, ..., C], or [..., C] of each input.
  Inputs<Scalar> inputs;
};

/// Graph, FloatInputs, DoubleInputs.
void bind_batches(nanobind::module_& module);

}  // namespace widelimit::python
