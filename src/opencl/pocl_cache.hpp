#pragma once

#include <string>

/// PoCL, OpenCL on the processor, compiles into a folder. Where it cannot write there it has no devices, or no
/// programs, and does not say why.
namespace widelimit::opencl {

/// Whether a platform of this name is PoCL's.
bool is_pocl(const std::string& platform);

/// The setting of the environment at which PoCL ends the process when it lists devices, with what to do; empty
/// without one.
std::string fatal_pocl_setting();

/// Behind what a driver of this platform failed to do: "; " and why PoCL cannot write into its folder, with what to do.
/// Empty for other platforms, and if it can. It makes the folder, as PoCL would have, and tries.
std::string pocl_cache_remark(const std::string& platform);

}  // namespace widelimit::opencl
