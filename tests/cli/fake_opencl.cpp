/// A loader of OpenCL (libOpenCL.so.1) whose drivers say what variables of the environment ask for:
///   FAKE_PLATFORMS      "A=1,2;B=1;C=code -5": names with the handles of their devices, or what clGetDeviceIDs returns
///   FAKE_PLATFORMS_CODE what clGetPlatformIDs returns
///   FAKE_INFO_CODE      what clGetDeviceInfo returns for the memory of a device
///   FAKE_BUILD_CODE     what clBuildProgram returns
///   FAKE_LOG_LINES      how many lines the log of a build has
/// It computes nothing: calls of which no test is made are not there.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

cl_int code_in(const char* name) { return std::atoi(variable(name).c_str()); }

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

template <typename Handle>
Handle handle(std::size_t number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
}

template <typename Handle>
std::size_t number_of(Handle given) {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(given));
}

/// "A=1,2" of platform number 1, 2, ...
std::vector<std::string> platform(cl_platform_id id) {
  std::vector<std::string> parts =
      parts_of(parts_of(variable("FAKE_PLATFORMS"), ';').at(number_of(id) - 1), '=');
  parts.resize(2);
  return parts;
}

cl_int give(const void* value, std::size_t size, std::size_t room, void* to, std::size_t* needed) {
  if (needed != nullptr) *needed = size;
  if (to == nullptr) return CL_SUCCESS;
  if (room < size) return CL_INVALID_VALUE;
  std::memcpy(to, value, size);
  return CL_SUCCESS;
}

cl_int give(const std::string& text, std::size_t room, void* to, std::size_t* needed) {
  return give(text.c_str(), text.size() + 1, room, to, needed);
}

template <typename Handle>
cl_int give_handles(const std::vector<Handle>& all, cl_uint room, Handle* to, cl_uint* count) {
  if (count != nullptr) *count = static_cast<cl_uint>(all.size());
  if (to != nullptr) std::copy_n(all.begin(), std::min<std::size_t>(room, all.size()), to);
  return CL_SUCCESS;
}

template <typename Handle>
Handle made(cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return handle<Handle>(1);
}

std::string log_text() {
  std::string text;
  for (int line = 1; line <= code_in("FAKE_LOG_LINES"); ++line)
    text += "line " + std::to_string(line) + ": error: of the fake compiler\n";
  return text;
}

}  // namespace

extern "C" {

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* to, cl_uint* count) {
  if (const cl_int code = code_in("FAKE_PLATFORMS_CODE"); code != CL_SUCCESS) return code;
  std::vector<cl_platform_id> all;
  // A platform whose name begins with "same " is the first once more.
  for (const std::string& one : parts_of(variable("FAKE_PLATFORMS"), ';'))
    all.push_back(handle<cl_platform_id>(one.starts_with("same ") ? 1 : all.size() + 1));
  return give_handles(all, room, to, count);
}

cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, std::size_t room, void* to,
                         std::size_t* needed) {
  return give(what == CL_PLATFORM_NAME ? platform(id).at(0) : "Fake 1.2", room, to, needed);
}

cl_int clGetDeviceIDs(cl_platform_id id, cl_device_type, cl_uint room, cl_device_id* to, cl_uint* count) {
  const std::string numbers = platform(id).at(1);
  if (numbers.starts_with("code ")) return std::atoi(numbers.c_str() + 5);
  std::vector<cl_device_id> all;
  for (const std::string& number : parts_of(numbers, ','))
    all.push_back(handle<cl_device_id>(std::stoul(number)));
  return give_handles(all, room, to, count);
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, std::size_t room, void* to,
                       std::size_t* needed) {
  constexpr cl_device_type type = CL_DEVICE_TYPE_GPU;
  constexpr cl_bool yes = CL_TRUE;
  constexpr cl_ulong bytes = cl_ulong{1} << 30;
  constexpr std::size_t group = 256;
  constexpr cl_uint units = 4;
  const cl_int code = code_in("FAKE_INFO_CODE");
  switch (what) {
    case CL_DEVICE_NAME:
      return give("card " + std::to_string(number_of(id)), room, to, needed);
    case CL_DRIVER_VERSION:
      return give("1", room, to, needed);
    case CL_DEVICE_TYPE:
      return give(&type, sizeof type, room, to, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
      return give(&yes, sizeof yes, room, to, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return code != CL_SUCCESS ? code : give(&bytes, sizeof bytes, room, to, needed);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return give(&bytes, sizeof bytes, room, to, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return give(&group, sizeof group, room, to, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return give(&units, sizeof units, room, to, needed);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                           void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*,
                           cl_int* code) {
  return made<cl_context>(code);
}
cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties, cl_int* code) {
  return made<cl_command_queue>(code);
}
cl_mem clCreateBuffer(cl_context, cl_mem_flags, std::size_t, void*, cl_int* code) {
  return made<cl_mem>(code);
}
cl_program clCreateProgramWithSource(cl_context, cl_uint, const char**, const std::size_t*, cl_int* code) {
  return made<cl_program>(code);
}
cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*,
                      void(CL_CALLBACK*)(cl_program, void*), void*) {
  return code_in("FAKE_BUILD_CODE");
}
cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, std::size_t room, void* to,
                             std::size_t* needed) {
  return give(log_text(), room, to, needed);
}
cl_kernel clCreateKernel(cl_program, const char*, cl_int* code) { return made<cl_kernel>(code); }
cl_int clReleaseContext(cl_context) { return CL_SUCCESS; }
cl_int clReleaseCommandQueue(cl_command_queue) { return CL_SUCCESS; }
cl_int clReleaseMemObject(cl_mem) { return CL_SUCCESS; }
cl_int clReleaseProgram(cl_program) { return CL_SUCCESS; }
cl_int clReleaseKernel(cl_kernel) { return CL_SUCCESS; }
cl_int clSetKernelArg(cl_kernel, cl_uint, std::size_t, const void*) { return CL_SUCCESS; }
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info, std::size_t, void*,
                                std::size_t*) {
  return CL_INVALID_VALUE;
}
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,
                              const std::size_t*, cl_uint, const cl_event*, cl_event*) {
  return CL_OUT_OF_RESOURCES;
}
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, const void*, cl_uint,
                            const cl_event*, cl_event*) {
  return CL_SUCCESS;
}
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint,
                           const cl_event*, cl_event*) {
  return CL_OUT_OF_RESOURCES;
}
void* clEnqueueMapBuffer(cl_command_queue, cl_mem, cl_bool, cl_map_flags, std::size_t, std::size_t, cl_uint,
                         const cl_event*, cl_event*, cl_int* code) {
  *code = CL_MAP_FAILURE;
  return nullptr;
}
cl_int clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event*) {
  return CL_SUCCESS;
}
cl_int clFinish(cl_command_queue) { return CL_SUCCESS; }

}  // extern "C"
