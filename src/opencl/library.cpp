#include "opencl/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "opencl/call.hpp"

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
  std::vector<cl_platform_id> platforms;
};

/// The process that has opened drivers, or is about to; 0 before, and where there are none.
std::atomic<pid_t> opened_by = 0;

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

/// The platforms that a function with the arguments of clGetPlatformIDs() gives. `code`: what it returned.
template <typename GetPlatforms>
std::vector<cl_platform_id> platforms_by(GetPlatforms get_platforms, cl_int& code) {
  cl_uint count = 0;
  code = get_platforms(0, nullptr, &count);
  if (code != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) code = get_platforms(count, platforms.data(), nullptr);
  return code == CL_SUCCESS ? platforms : std::vector<cl_platform_id>{};
}

/// Drivers may be registered twice.
std::vector<cl_platform_id> without_repetitions(const std::vector<cl_platform_id>& platforms) {
  std::vector<cl_platform_id> found;
  for (const cl_platform_id platform : platforms)
    if (std::ranges::find(found, platform) == found.end()) found.push_back(platform);
  return found;
}

std::string vendor_of(const Functions& functions, cl_platform_id platform) {
  std::array<char, 256> text{};
  functions.get_platform_info(platform, CL_PLATFORM_VENDOR, text.size() - 1, text.data(), nullptr);
  return text.data();
}

/// What dlopen() said last.
std::string dynamic_error() {
  // NOLINTNEXTLINE: the text is each thread's own
  const char* text = dlerror();
  return text == nullptr ? "" : text;
}

/// The platforms of a driver that no .icd file names, by the extension through which loaders ask for them. Its objects
/// have the driver's table of functions with them, so the loader's functions work on them. `problem` receives what a
/// driver that is there said.
std::vector<cl_platform_id> platforms_of_driver(const char* name, std::string& problem) {
  void* driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return {};
  void* (*address_of)(const char*) = nullptr;
  if (!find(driver, "clGetExtensionFunctionAddress", address_of)) return {};
  using GetPlatforms = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);
  // NOLINTNEXTLINE: the extension gives functions as data
  const auto get_platforms = reinterpret_cast<GetPlatforms>(address_of("clIcdGetPlatformIDsKHR"));
  if (get_platforms == nullptr) return {};
  cl_int code = CL_SUCCESS;
  std::vector<cl_platform_id> platforms = platforms_by(get_platforms, code);
  if (code != CL_SUCCESS) problem = fmt::format("{}: clIcdGetPlatformIDsKHR: {}", name, error_name(code));
  return platforms;
}

void find_platforms(Loaded& loaded) {
  cl_int code = CL_SUCCESS;
  std::string of_driver;
  loaded.platforms = platforms_by(loaded.functions.get_platforms, code);
  const bool has_nvidia = std::ranges::any_of(loaded.platforms, [&](cl_platform_id platform) {
    return vendor_of(loaded.functions, platform).find("NVIDIA") != std::string::npos;
  });
  std::vector<cl_platform_id> unregistered;
  for (const char* driver : nvidia_drivers)
    if (!has_nvidia && unregistered.empty()) unregistered = platforms_of_driver(driver, of_driver);
  loaded.platforms.insert(loaded.platforms.end(), unregistered.begin(), unregistered.end());
  loaded.platforms = without_repetitions(loaded.platforms);
  if (!loaded.platforms.empty()) return;
  constexpr cl_int no_driver = -1001;
  if (code != CL_SUCCESS && code != no_driver)
    loaded.problem =
        fmt::format("the drivers of OpenCL cannot be listed: clGetPlatformIDs: {}", error_name(code));
  else
    loaded.problem =
        "no driver of OpenCL is registered: install that of the device, or one for the CPU (Debian, Ubuntu: "
        "pocl-opencl-icd); in containers, name the driver's library in a file of /etc/OpenCL/vendors, for "
        "NVIDIA "
        "libnvidia-opencl.so.1";
  if (!of_driver.empty()) loaded.problem += "; " + of_driver;
}

Loaded load() {
  Loaded loaded;
  void* library = dlopen(loader_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.problem = fmt::format(
        "{}, the loader of OpenCL, cannot be opened ({}): install it (Debian, Ubuntu: ocl-icd-libopencl1) "
        "and a "
        "driver of the device",
        loader_name, dynamic_error());
  } else if (!find_all(library, loaded.functions)) {
    loaded.problem =
        fmt::format("{} has not all functions of OpenCL 1.2: install a newer loader", loader_name);
  } else {
    loaded.works = true;
    find_platforms(loaded);
  }
  // Without drivers nothing has threads.
  if (loaded.platforms.empty()) opened_by = 0;
  return loaded;
}

const Loaded& loaded() {
  // A process that was forked while another thread was loading must not wait for that thread either.
  pid_t opener = 0;
  const pid_t self = getpid();
  if (!opened_by.compare_exchange_strong(opener, self) && opener != self)
    throw DeviceError(
        "device: this process was forked from one that had opened the devices of OpenCL, whose drivers do "
        "not work "
        "in both; start processes by spawn instead (in Python multiprocessing.get_context(\"spawn\")), or "
        "open "
        "devices in the forked ones only; the device cpu computes in either");
  static const Loaded once = load();
  if (once.platforms.empty()) opened_by = 0;
  return once;
}

}  // namespace

const Functions* functions() { return loaded().works ? &loaded().functions : nullptr; }

bool may_release() { return opened_by == getpid(); }

std::string problem() { return loaded().problem; }

const std::vector<cl_platform_id>& platforms() { return loaded().platforms; }

}  // namespace widelimit::opencl
