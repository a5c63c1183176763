#include "opencl/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace widelimit::opencl {
namespace {

/// A code of an error, with what it means where its name does not say it.
struct Code {
  cl_int number;
  const char *name, *meaning;
};

#define WIDELIMIT_CODE(name, meaning) \
  Code { name, #name, meaning }

constexpr std::array codes{
    WIDELIMIT_CODE(CL_DEVICE_NOT_FOUND, "the platform has no such device"),
    WIDELIMIT_CODE(CL_DEVICE_NOT_AVAILABLE, "device not available"),
    WIDELIMIT_CODE(CL_COMPILER_NOT_AVAILABLE, "compiler not available"),
    WIDELIMIT_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE, "out of the device's memory"),
    WIDELIMIT_CODE(CL_OUT_OF_RESOURCES, "out of resources"),
    WIDELIMIT_CODE(CL_OUT_OF_HOST_MEMORY, "out of host memory"),
    WIDELIMIT_CODE(CL_PROFILING_INFO_NOT_AVAILABLE, ""),
    WIDELIMIT_CODE(CL_MEM_COPY_OVERLAP, ""),
    WIDELIMIT_CODE(CL_IMAGE_FORMAT_MISMATCH, ""),
    WIDELIMIT_CODE(CL_IMAGE_FORMAT_NOT_SUPPORTED, ""),
    WIDELIMIT_CODE(CL_BUILD_PROGRAM_FAILURE, "the source of a kernel cannot be compiled"),
    WIDELIMIT_CODE(CL_MAP_FAILURE, ""),
    WIDELIMIT_CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET, ""),
    WIDELIMIT_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, ""),
    WIDELIMIT_CODE(CL_COMPILE_PROGRAM_FAILURE, ""),
    WIDELIMIT_CODE(CL_LINKER_NOT_AVAILABLE, ""),
    WIDELIMIT_CODE(CL_LINK_PROGRAM_FAILURE, ""),
    WIDELIMIT_CODE(CL_DEVICE_PARTITION_FAILED, ""),
    WIDELIMIT_CODE(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, ""),
    WIDELIMIT_CODE(CL_INVALID_VALUE, ""),
    WIDELIMIT_CODE(CL_INVALID_DEVICE_TYPE, ""),
    WIDELIMIT_CODE(CL_INVALID_PLATFORM, ""),
    WIDELIMIT_CODE(CL_INVALID_DEVICE, ""),
    WIDELIMIT_CODE(CL_INVALID_CONTEXT, ""),
    WIDELIMIT_CODE(CL_INVALID_QUEUE_PROPERTIES, ""),
    WIDELIMIT_CODE(CL_INVALID_COMMAND_QUEUE, ""),
    WIDELIMIT_CODE(CL_INVALID_HOST_PTR, ""),
    WIDELIMIT_CODE(CL_INVALID_MEM_OBJECT, ""),
    WIDELIMIT_CODE(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, ""),
    WIDELIMIT_CODE(CL_INVALID_IMAGE_SIZE, ""),
    WIDELIMIT_CODE(CL_INVALID_SAMPLER, ""),
    WIDELIMIT_CODE(CL_INVALID_BINARY, ""),
    WIDELIMIT_CODE(CL_INVALID_BUILD_OPTIONS, ""),
    WIDELIMIT_CODE(CL_INVALID_PROGRAM, ""),
    WIDELIMIT_CODE(CL_INVALID_PROGRAM_EXECUTABLE, ""),
    WIDELIMIT_CODE(CL_INVALID_KERNEL_NAME, ""),
    WIDELIMIT_CODE(CL_INVALID_KERNEL_DEFINITION, ""),
    WIDELIMIT_CODE(CL_INVALID_KERNEL, ""),
    WIDELIMIT_CODE(CL_INVALID_ARG_INDEX, ""),
    WIDELIMIT_CODE(CL_INVALID_ARG_VALUE, ""),
    WIDELIMIT_CODE(CL_INVALID_ARG_SIZE, ""),
    WIDELIMIT_CODE(CL_INVALID_KERNEL_ARGS, ""),
    WIDELIMIT_CODE(CL_INVALID_WORK_DIMENSION, ""),
    WIDELIMIT_CODE(CL_INVALID_WORK_GROUP_SIZE, "a work-group of that size is not possible"),
    WIDELIMIT_CODE(CL_INVALID_WORK_ITEM_SIZE, ""),
    WIDELIMIT_CODE(CL_INVALID_GLOBAL_OFFSET, ""),
    WIDELIMIT_CODE(CL_INVALID_EVENT_WAIT_LIST, ""),
    WIDELIMIT_CODE(CL_INVALID_EVENT, ""),
    WIDELIMIT_CODE(CL_INVALID_OPERATION, ""),
    WIDELIMIT_CODE(CL_INVALID_GL_OBJECT, ""),
    WIDELIMIT_CODE(CL_INVALID_BUFFER_SIZE, "a buffer of that size is not possible"),
    WIDELIMIT_CODE(CL_INVALID_MIP_LEVEL, ""),
    WIDELIMIT_CODE(CL_INVALID_GLOBAL_WORK_SIZE, ""),
    WIDELIMIT_CODE(CL_INVALID_PROPERTY, ""),
    WIDELIMIT_CODE(CL_INVALID_IMAGE_DESCRIPTOR, ""),
    WIDELIMIT_CODE(CL_INVALID_COMPILER_OPTIONS, ""),
    WIDELIMIT_CODE(CL_INVALID_LINKER_OPTIONS, ""),
    WIDELIMIT_CODE(CL_INVALID_DEVICE_PARTITION_COUNT, ""),
    // Of the loader's extension cl_khr_icd.
    Code{-1001, "CL_PLATFORM_NOT_FOUND_KHR", "no driver is registered"},
};

#undef WIDELIMIT_CODE

}  // namespace

std::string error_name(cl_int code) {
  const auto* const known = std::ranges::find_if(codes, [&](const Code& one) { return one.number == code; });
  if (known == codes.end()) return fmt::format("OpenCL error {}", code);
  const std::string name = fmt::format("{} ({})", known->name, code);
  return *known->meaning == '\0' ? name : fmt::format("{}, {}", known->meaning, name);
}

void check(cl_int code, const std::string& doing) {
  if (code != CL_SUCCESS) throw DeviceError(fmt::format("device: {}: {}", doing, error_name(code)));
}

}  // namespace widelimit::opencl
