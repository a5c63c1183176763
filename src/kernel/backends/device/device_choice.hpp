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

/// The one of these devices that a choice names: "gpu", a GPU, or part of a platform's or device's name, case aside;
/// followed by ":N", number N of several, from 0. Throws DeviceError if there is none, or if there are several.
const opencl::Device& chosen_device(const std::vector<opencl::Device>& devices, const std::string& choice);

/// The device that a choice names among all. One session is kept of each device. Throws DeviceError if there is none,
/// or no longer.
std::shared_ptr<opencl::Session> open_device(const std::string& choice);

}  // namespace widelimit
