#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opencl/library.hpp"

namespace widelimit::opencl {

/// A device of OpenCL, and what it can do.
struct Device {
  cl_device_id id;
  std::string name, platform, driver;
  bool is_gpu;
  bool has_double;
  bool is_available;  ///< With a compiler.
  std::uint64_t memory, largest_buffer, local_memory;
  std::size_t largest_group;
  std::uint32_t units;
};

/// All devices; none without a loader.
std::vector<Device> list_devices();

}  // namespace widelimit::opencl
