#include "opencl/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "opencl/call.hpp"
#include "opencl/pocl_cache.hpp"

namespace widelimit::opencl {
namespace {

/// What a device says of itself. The first question that its driver does not answer is its problem.
class Questions {
 public:
  explicit Questions(cl_device_id device) : device_{device} {}

  template <typename Number>
  Number number(cl_device_info what, const char* name) {
    Number value{};
    return answered(functions()->get_device_info(device_, what, sizeof value, &value, nullptr), name)
               ? value
               : Number{};
  }
  std::string text(cl_device_info what, const char* name) {
    std::size_t size = 0;
    if (!answered(functions()->get_device_info(device_, what, 0, nullptr, &size), name) || size == 0)
      return {};
    std::string value(size, '\0');
    if (!answered(functions()->get_device_info(device_, what, size, value.data(), nullptr), name)) return {};
    // Some drivers do not end their texts.
    value.resize(std::min(value.find('\0'), value.size()));
    return value;
  }
  /// Drivers without double need not know the question.
  [[nodiscard]] bool has_double() const {
    cl_device_fp_config found = 0;
    return functions()->get_device_info(device_, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof found, &found, nullptr) ==
               CL_SUCCESS &&
           found != 0;
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  bool answered(cl_int code, const char* name) {
    if (code != CL_SUCCESS && problem_.empty())
      problem_ = fmt::format("clGetDeviceInfo, {}: {}", name, error_name(code));
    return code == CL_SUCCESS;
  }

  cl_device_id device_;
  std::string problem_;
};

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  std::size_t size = 0;
  if (functions()->get_platform_info(platform, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string value(size, '\0');
  if (functions()->get_platform_info(platform, what, size, value.data(), nullptr) != CL_SUCCESS) return {};
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

#define WIDELIMIT_ASKED(Type, what) ask.number<Type>(what, #what)

Device describe(cl_device_id id, const std::string& platform) {
  Questions ask(id);
  const auto type = WIDELIMIT_ASKED(cl_device_type, CL_DEVICE_TYPE);
  Device device{.id = id,
                .name = ask.text(CL_DEVICE_NAME, "CL_DEVICE_NAME"),
                .platform = platform,
                .driver = ask.text(CL_DRIVER_VERSION, "CL_DRIVER_VERSION"),
                .is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0,
                .is_processor = (type & CL_DEVICE_TYPE_CPU) != 0,
                .has_double = ask.has_double(),
                .is_available = false,
                .memory = WIDELIMIT_ASKED(cl_ulong, CL_DEVICE_GLOBAL_MEM_SIZE),
                .largest_buffer = WIDELIMIT_ASKED(cl_ulong, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                .local_memory = WIDELIMIT_ASKED(cl_ulong, CL_DEVICE_LOCAL_MEM_SIZE),
                .largest_group = WIDELIMIT_ASKED(std::size_t, CL_DEVICE_MAX_WORK_GROUP_SIZE),
                .units = WIDELIMIT_ASKED(cl_uint, CL_DEVICE_MAX_COMPUTE_UNITS)};
  const bool is_there = WIDELIMIT_ASKED(cl_bool, CL_DEVICE_AVAILABLE) != CL_FALSE,
             has_compiler = WIDELIMIT_ASKED(cl_bool, CL_DEVICE_COMPILER_AVAILABLE) != CL_FALSE;
  device.problem = !ask.problem().empty() ? ask.problem()
                   : !is_there            ? "its driver says that it is not available"
                   : !has_compiler        ? "its driver has no compiler"
                                          : "";
  device.is_available = device.problem.empty();
  return device;
}

#undef WIDELIMIT_ASKED

/// The handles of a platform's devices. `problem` receives why there are none.
std::vector<cl_device_id> handles(cl_platform_id platform, const std::string& name, std::string& problem) {
  // PoCL ends the process over some settings.
  problem = is_pocl(name) ? fatal_pocl_setting() : "";
  if (!problem.empty()) return {};
  cl_uint count = 0;
  cl_int code = functions()->get_devices(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  std::vector<cl_device_id> ids(code == CL_SUCCESS ? count : 0);
  if (!ids.empty()) code = functions()->get_devices(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
  if (code == CL_SUCCESS && !ids.empty()) return ids;
  problem =
      code == CL_SUCCESS ? "clGetDeviceIDs found none" : fmt::format("clGetDeviceIDs: {}", error_name(code));
  problem += pocl_cache_remark(name);
  return {};
}

/// The platform that already has a device.
const Platform* owner_of(cl_device_id id, const std::vector<Platform>& platforms) {
  const auto owner = std::ranges::find_if(platforms, [&](const Platform& one) {
    return std::ranges::any_of(one.devices, [&](const Device& device) { return device.id == id; });
  });
  return owner == platforms.end() ? nullptr : &*owner;
}

}  // namespace

std::vector<Platform> list_platforms() {
  std::vector<Platform> all;
  for (const cl_platform_id id : platforms()) {
    const std::string name = platform_text(id, CL_PLATFORM_NAME);
    all.push_back(
        {.name = name, .version = platform_text(id, CL_PLATFORM_VERSION), .devices = {}, .problem = {}});
    std::string& problem = all.back().problem;
    for (const cl_device_id device : handles(id, name, problem)) {
      if (const Platform* const owner = owner_of(device, all); owner == nullptr)
        all.back().devices.push_back(describe(device, name));
      else if (owner != &all.back())
        problem = fmt::format("its devices are those of {}", owner->name);
    }
    if (!all.back().devices.empty()) problem.clear();
  }
  return all;
}

std::vector<Device> list_devices() {
  std::vector<Device> devices;
  for (Platform& platform : list_platforms())
    std::ranges::move(platform.devices, std::back_inserter(devices));
  return devices;
}

std::string problems() {
  std::string all = problem();
  for (const Platform& platform : list_platforms())
    if (!platform.problem.empty())
      all += fmt::format("{}{} has no devices: {}", all.empty() ? "" : "; ", platform.name, platform.problem);
  return all;
}

}  // namespace widelimit::opencl
