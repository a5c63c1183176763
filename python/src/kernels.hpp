#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <string>

#include "widelimit/gp/model.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::python {

/// "nngp", "ntk", or "both", which the Python half has checked.
[[nodiscard]] Kernels kernels_named(const std::string& name);

/// Has a model's kernels computed into stores in a folder; what they report is a warning, at once.
void set_store(gp::ModelOptions& options, const std::filesystem::path& folder);

/// Gram matrices and plans, for float32 and float64.
void bind_kernels(nanobind::module_& module);

}  // namespace widelimit::python
