#include "opencl/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace widelimit::opencl {
namespace {

constexpr const char* loader_name = "libOpenCL.so.1";

/// NVIDIA's driver, and the folder where containers mount it.
constexpr std::array<const char*, 2> nvidia_drivers{"libnvidia-opencl.so.1",
                                                    "/usr/local/nvidia/lib64/libnvidia-opencl.so.1"};

struct Loaded {
  bool works = false;
  std::string problem;
  Functions functions{};
  std::vector<cl_platform_id> unregistered;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  // NOLINTNEXTLINE: dlsym() gives functions as data
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& to) {
  return find(library, "clGetPlatformIDs", to.get_platforms) &&
         find(library, "clGetPlatformInfo", to.get_platform_info) &&
         find(library, "clGetDeviceIDs", to.get_devices) &&
         find(library, "clGetDeviceInfo", to.get_device_info) &&
         find(library, "clCreateContext", to.create_context) &&
         find(library, "clReleaseContext", to.release_context) &&
         find(library, "clCreateCommandQueue", to.create_queue) &&
         find(library, "clReleaseCommandQueue", to.release_queue) &&
         find(library, "clCreateBuffer", to.create_buffer) &&
         find(library, "clReleaseMemObject", to.release_buffer) &&
         find(library, "clCreateProgramWithSource", to.create_program) &&
         find(library, "clBuildProgram", to.build_program) &&
         find(library, "clGetProgramBuildInfo", to.get_build_info) &&
         find(library, "clReleaseProgram", to.release_program) &&
         find(library, "clCreateKernel", to.create_kernel) &&
         find(library, "clReleaseKernel", to.release_kernel) &&
         find(library, "clSetKernelArg", to.set_argument) &&
         find(library, "clGetKernelWorkGroupInfo", to.get_group_info) &&
         find(library, "clEnqueueNDRangeKernel", to.enqueue_kernel) &&
         find(library, "clEnqueueWriteBuffer", to.enqueue_write) &&
         find(library, "clEnqueueReadBuffer", to.enqueue_read) &&
         find(library, "clEnqueueMapBuffer", to.enqueue_map) &&
         find(library, "clEnqueueUnmapMemObject", to.enqueue_unmap) && find(library, "clFinish", to.finish);
}

std::vector<cl_platform_id> registered(const Functions& functions) {
  cl_uint count = 0;
  if (functions.get_platforms(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (functions.get_platforms(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  return platforms;
}

std::string vendor_of(const Functions& functions, cl_platform_id platform) {
  std::array<char, 256> text{};
  functions.get_platform_info(platform, CL_PLATFORM_VENDOR, text.size() - 1, text.data(), nullptr);
  return text.data();
}

/// The platforms of a driver that no .icd file names, by the extension through which loaders ask for them. Its objects
/// have the driver's table of functions with them, so the loader's functions work on them.
std::vector<cl_platform_id> platforms_of_driver(const char* name) {
  void* driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return {};
  void* (*address_of)(const char*) = nullptr;
  if (!find(driver, "clGetExtensionFunctionAddress", address_of)) return {};
  using GetPlatforms = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);
  // NOLINTNEXTLINE: the extension gives functions as data
  const auto get_platforms = reinterpret_cast<GetPlatforms>(address_of("clIcdGetPlatformIDsKHR"));
  cl_uint count = 0;
  if (get_platforms == nullptr || get_platforms(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (get_platforms(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  return platforms;
}

Loaded load() {
  Loaded loaded;
  void* library = dlopen(loader_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.problem = fmt::format(
        "{} is missing, the loader of OpenCL: install it (Debian, Ubuntu: ocl-icd-libopencl1) and a driver "
        "of "
        "the device",
        loader_name);
    return loaded;
  }
  if (!find_all(library, loaded.functions)) {
    loaded.problem =
        fmt::format("{} has not all functions of OpenCL 1.2: install a newer loader", loader_name);
    return loaded;
  }
  loaded.works = true;
  const std::vector<cl_platform_id> known = registered(loaded.functions);
  const bool has_nvidia = std::any_of(known.begin(), known.end(), [&](cl_platform_id platform) {
    return vendor_of(loaded.functions, platform).find("NVIDIA") != std::string::npos;
  });
  for (const char* driver : nvidia_drivers)
    if (!has_nvidia && loaded.unregistered.empty()) loaded.unregistered = platforms_of_driver(driver);
  if (known.empty() && loaded.unregistered.empty())
    loaded.problem =
        "no driver of OpenCL is registered: install that of the device, or one for the CPU (Debian, Ubuntu: "
        "pocl-opencl-icd); in containers, name the driver's library in a file of /etc/OpenCL/vendors, for "
        "NVIDIA "
        "libnvidia-opencl.so.1";
  return loaded;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

const Functions* functions() { return loaded().works ? &loaded().functions : nullptr; }

std::string problem() { return loaded().problem; }

std::vector<cl_platform_id> platforms() {
  if (functions() == nullptr) return {};
  std::vector<cl_platform_id> all = registered(*functions());
  all.insert(all.end(), loaded().unregistered.begin(), loaded().unregistered.end());
  return all;
}

}  // namespace widelimit::opencl
