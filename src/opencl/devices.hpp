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
  bool is_processor = false;  ///< The host's own, by a driver like PoCL.
  bool has_double;
  bool is_available;  ///< With a compiler.
  std::uint64_t memory, largest_buffer, local_memory;
  std::size_t largest_group;
  std::uint32_t units;
  std::string problem = {};  ///< Why it is not available.
};

/// A driver of OpenCL with its devices.
struct Platform {
  std::string name, version;
  std::vector<Device> devices;
  std::string problem;  ///< Why it has none, as far as the driver says it; empty if it has some.
};

/// All platforms; none without a loader. A device that several platforms offer, or one of them several times, belongs
/// to the first that does.
std::vector<Platform> list_platforms();

/// All devices, in the order of their platforms.
std::vector<Device> list_devices();

/// Why there are no devices, or fewer than platforms: problem(), and those of platforms. Empty if nothing is known.
std::string problems();

}  // namespace widelimit::opencl
