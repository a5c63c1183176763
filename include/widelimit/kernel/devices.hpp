#pragma once

#include <cstdint>
#include <functional>
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
  bool is_available;    ///< With a compiler.
  std::string problem;  ///< Why it is not; empty if it is.
  bool has_double;
  std::uint64_t memory_bytes;
  std::uint64_t local_memory_bytes;  ///< What a work-group can share.
  int units;                         ///< Multiprocessors, or cores.
};

/// A driver of OpenCL.
struct PlatformDescription {
  std::string name;
  std::string version;
  int devices;          ///< How many it has that no platform before it has.
  std::string problem;  ///< Why it has none, as far as the driver says it; empty if it has some.
};

/// All devices, in the order in which GramOptions::device counts them; none if OpenCL is not installed. Like all
/// functions here, throws DeviceError in a process that was forked from one that had called one of them: drivers do
/// not work in both.
[[nodiscard]] std::vector<DeviceDescription> devices();

/// All platforms, those without devices as well, in the order of their devices.
[[nodiscard]] std::vector<PlatformDescription> device_platforms();

/// Name, platform and driver of the device that GramOptions::device chooses; empty for the CPU. Throws DeviceError.
[[nodiscard]] std::string device_in_full(const std::string& choice);

/// Of several devices that a choice names the one whose number is `turn` modulo how many they are, as a choice; a
/// choice of one, or of the CPU, as it is. Throws DeviceError.
[[nodiscard]] std::string device_in_turn(const std::string& choice, int turn);

/// From now on, what people should know of devices although nothing fails (a form that cannot be kept) is told to
/// `report`, each text once a process, by any thread; to standard error where this is empty, as in the beginning.
void report_device_notices(std::function<void(const std::string& notice)> report);

/// What has to be installed before there are devices; empty if nothing is known to be missing.
[[nodiscard]] std::string missing_for_devices();

}  // namespace widelimit
