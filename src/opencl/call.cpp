#include "opencl/call.hpp"

#include <fmt/format.h>

namespace widelimit::opencl {

std::string error_name(cl_int code) {
  switch (code) {
    case CL_DEVICE_NOT_AVAILABLE:
      return "device not available";
    case CL_COMPILER_NOT_AVAILABLE:
      return "compiler not available";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "out of the device's memory";
    case CL_OUT_OF_RESOURCES:
      return "out of resources";
    case CL_OUT_OF_HOST_MEMORY:
      return "out of host memory";
    case CL_BUILD_PROGRAM_FAILURE:
      return "the program cannot be built";
    case CL_INVALID_BUFFER_SIZE:
      return "a buffer of that size is not possible";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "a work-group of that size is not possible";
    default:
      return fmt::format("OpenCL error {}", code);
  }
}

void check(cl_int code, const std::string& doing) {
  if (code != CL_SUCCESS) throw DeviceError(fmt::format("device: {}: {}", doing, error_name(code)));
}

}  // namespace widelimit::opencl
