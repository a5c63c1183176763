#include "opencl/devices.hpp"

#include <algorithm>

namespace widelimit::opencl {
namespace {

template <typename Number>
Number number(cl_device_id device, cl_device_info what) {
  Number value{};
  if (functions()->get_device_info(device, what, sizeof value, &value, nullptr) != CL_SUCCESS) return {};
  return value;
}

std::string text(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (functions()->get_device_info(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string value(size, '\0');
  if (functions()->get_device_info(device, what, size, value.data(), nullptr) != CL_SUCCESS) return {};
  // Some drivers do not end their texts.
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

std::string platform_name(cl_platform_id platform) {
  std::size_t size = 0;
  if (functions()->get_platform_info(platform, CL_PLATFORM_NAME, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string value(size, '\0');
  if (functions()->get_platform_info(platform, CL_PLATFORM_NAME, size, value.data(), nullptr) != CL_SUCCESS)
    return {};
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

Device describe(cl_device_id id, const std::string& platform) {
  return {.id = id,
          .name = text(id, CL_DEVICE_NAME),
          .platform = platform,
          .driver = text(id, CL_DRIVER_VERSION),
          .is_gpu = (number<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0,
          .has_double = number<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
          .is_available = number<cl_bool>(id, CL_DEVICE_AVAILABLE) != CL_FALSE &&
                          number<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) != CL_FALSE,
          .memory = number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE),
          .largest_buffer = number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
          .local_memory = number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE),
          .largest_group = number<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE),
          .units = number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS)};
}

}  // namespace

std::vector<Device> list_devices() {
  std::vector<Device> devices;
  for (const cl_platform_id platform : platforms()) {
    cl_uint count = 0;
    if (functions()->get_devices(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (functions()->get_devices(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
      continue;
    for (const cl_device_id id : ids) devices.push_back(describe(id, platform_name(platform)));
  }
  return devices;
}

}  // namespace widelimit::opencl
