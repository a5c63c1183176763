#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace widelimit::store {

/// What this machine computes with, on which the last bits of kernels depend: {"vectors", "blas"}, the vector
/// instructions that the library uses ("AVX2") and the processor that OpenBLAS has kernels for ("Haswell"). A store
/// keeps them, and says when another machine goes on with it. With a device (GramOptions::device), its name and driver
/// are "device".
[[nodiscard]] nlohmann::json arithmetic_facts(const std::string& device = {});

}  // namespace widelimit::store
