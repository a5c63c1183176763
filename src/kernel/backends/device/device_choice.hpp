#pragma once

#include <memory>
#include <string>
#include <vector>

#include "opencl/session.hpp"

namespace widelimit {

/// True if a choice of `--device` or GramOptions::device means the CPU engine: "" or "cpu".
[[nodiscard]] bool is_cpu(const std::string& choice);

/// Throws DeviceError unless a choice means the CPU, because devices cannot compute `what`, several things.
void require_cpu(const std::string& choice, const char* what);

/// Those of these devices that a choice names, in its order: "gpu", a GPU, or part of a platform's or device's name,
/// case aside; followed by ":N", number N of several, from 0, or by ":all"; and several such choices with commas
/// between them. Throws DeviceError if there is none, if several answer to a choice that means one, for a device that
/// is named twice, for the CPU beside others, and for devices that are not equal, whose results would differ.
std::vector<opencl::Device> chosen_devices(const std::vector<opencl::Device>& devices,
                                           const std::string& choice);

/// The devices that a choice names among all. One session is kept of each device. Throws DeviceError if there is none,
/// or no longer.
std::vector<std::shared_ptr<opencl::Session>> open_devices(const std::string& choice);

/// The only one. Throws DeviceError for several, which do not share `what`.
std::shared_ptr<opencl::Session> open_device(const std::string& choice, const char* what);

}  // namespace widelimit
