#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "widelimit/device_error.hpp"

namespace widelimit {

/// A device that OpenCL offers.
struct DeviceDescription {
  std::string name;
  std::string platform;
  std::string driver;  ///< Its version.
  bool is_gpu;
  bool is_available;  ///< With a compiler.
  bool has_double;
  std::uint64_t memory_bytes;
  std::uint64_t local_memory_bytes;  ///< What a work-group can share.
  int units;                         ///< Multiprocessors, or cores.
};

/// All devices, in the order in which GramOptions::device looks through them; none if OpenCL is not installed.
[[nodiscard]] std::vector<DeviceDescription> devices();

/// What has to be installed before there are devices; empty if nothing is known to be missing.
[[nodiscard]] std::string missing_for_devices();

}  // namespace widelimit
