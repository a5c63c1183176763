#pragma once

#include <string>

#include "opencl/devices.hpp"

namespace widelimit::opencl {

/// Throws DeviceError for a program that clBuildProgram() refused with this code. A log that is too long for a
/// message is shortened in the middle, and stands as a whole, with the source, in a file of its own, which the
/// message names.
[[noreturn]] void throw_build_error(const Device& device, cl_program program, const std::string& source,
                                    cl_int code);

}  // namespace widelimit::opencl
