#pragma once

#include <string>

#include "opencl/library.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit::opencl {

/// Throws DeviceError for a code that is not CL_SUCCESS: `doing` says what was tried.
void check(cl_int code, const std::string& doing);

/// What an error means, with its name in OpenCL and its number.
std::string error_name(cl_int code);

}  // namespace widelimit::opencl
